//! What a catalog takes from `pg_index`, `pg_opclass` and `pg_amproc` while it is read.

use std::collections::{BTreeMap, HashMap};

use pgclinic_format::Oid;
use pgclinic_format::oid::{
    PG_AMPROC, PG_INDEX, PG_INDEX_INDEXRELID_INDEX, PG_INDEX_INDRELID_INDEX, PG_OPCLASS,
};

use crate::catalog::Reader;
use crate::index::{Index, OpClass};
use crate::index_rows::equal_image_of_row;
use crate::relation::{RelKind, Relation};

const BTREE: Oid = 403;
/// `OID_BTREE_OPS_OID`.
const OID_OPS: Oid = 1981;

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
        attach_own_indexes(relations, classes);
    }
}

/// The two indexes of `pg_index` itself, where it lost the rows of them: no catalog but this one
/// says what an index is of, and their entries are the witnesses of its pages.
///
/// Truth: `src/include/catalog/pg_index.h`.
fn attach_own_indexes(relations: &mut BTreeMap<Oid, Relation>, classes: &HashMap<Oid, OpClass>) {
    let own = [
        (PG_INDEX_INDEXRELID_INDEX, 1, true),
        (PG_INDEX_INDRELID_INDEX, 2, false),
    ];
    for (oid, column, unique) in own {
        let relation = relations.get_mut(&oid);
        let is_lost = |own: &&mut Relation| own.kind == RelKind::Index && own.index.is_none();
        if let Some(relation) = relation.filter(is_lost) {
            let mut index = index_of_oids(column, unique);
            index.resolve(classes);
            relation.index = Some(index);
        }
    }
}

/// The index on this column of `pg_index`, as initdb makes it.
fn index_of_oids(column: i16, unique: bool) -> Index {
    Index {
        table: PG_INDEX,
        unique,
        immediate: true,
        valid: true,
        ready: true,
        live: true,
        key_count: 1,
        keys: vec![column],
        collations: vec![0],
        options: vec![0],
        class_oids: vec![OID_OPS],
        ..Index::default()
    }
}
