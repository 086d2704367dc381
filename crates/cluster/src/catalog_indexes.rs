//! What a catalog takes from `pg_index`, `pg_opclass` and `pg_amproc` while it is read.

use std::collections::{BTreeMap, HashMap};

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_AMPROC, PG_INDEX, PG_OPCLASS};

use crate::catalog::Reader;
use crate::index::{Index, OpClass};
use crate::index_rows::equal_image_of_row;
use crate::relation::Relation;

const BTREE: Oid = 403;

impl Reader<'_> {
    pub(crate) fn read_classes(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
    ) -> HashMap<Oid, OpClass> {
        let mut classes = HashMap::new();
        if let Some(pg_opclass) = relations.get(&PG_OPCLASS) {
            self.rows_of(pg_opclass, &mut |names, row| {
                let class = OpClass::of_row(names, &row);
                classes.extend(class.map(|class| (class.oid, class)));
            });
        }
        self.attach_equal_image(relations, &mut classes);
        classes
    }

    fn attach_equal_image(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
        classes: &mut HashMap<Oid, OpClass>,
    ) {
        let Some(pg_amproc) = relations.get(&PG_AMPROC) else {
            return;
        };
        let (troubles, mut functions) = (self.troubles(), HashMap::new());
        self.rows_of(pg_amproc, &mut |names, row| {
            functions.extend(equal_image_of_row(names, &row));
        });
        if self.troubles() > troubles {
            return;
        }
        for class in classes.values_mut().filter(|class| class.method == BTREE) {
            let function = functions.get(&(class.family, class.input_type));
            class.equal_image = Some(function.copied().unwrap_or(0));
        }
    }

    pub(crate) fn attach_indexes(
        &mut self,
        relations: &mut BTreeMap<Oid, Relation>,
        classes: &HashMap<Oid, OpClass>,
    ) {
        let Some(pg_index) = relations.get(&PG_INDEX).cloned() else {
            return;
        };
        let mut rowless = BTreeMap::new();
        self.rows_of(&pg_index, &mut |names, row| {
            let Some(oid) = row.u32(names.index("indexrelid")) else {
                return;
            };
            let Some(mut index) = Index::of_row(names, &row) else {
                return;
            };
            index.resolve(classes);
            match relations.get_mut(&oid) {
                Some(relation) => relation.index = Some(index),
                None => drop(rowless.insert(oid, index)),
            }
        });
        self.rowless.indexes = rowless;
    }
}
