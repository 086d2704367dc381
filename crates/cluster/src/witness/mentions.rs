//! Relations without a row in `pg_class` that other catalogs mention.
//!
//! ```text
//! pg_attribute.attrelid    pg_type.typrelid     pg_index.indexrelid, indrelid
//! pg_attrdef.adrelid       pg_constraint.conrelid, confrelid, conindid
//! pg_class.relname of a TOAST relation that nobody has: pg_toast_OID
//! ```
//!
//! They all go in the transaction in which the row of `pg_class` goes (`heap_drop_with_catalog`,
//! `index_drop`), so that rows which count tell of a relation that was not dropped. One that stands
//! alone may be a leaf that an older copy brought back: it counts with the file that the relation
//! was born with, or with a second one from another catalog.
//!
//! Truth: `src/backend/catalog/{heap,index,toasting}.c`.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_ATTRDEF, PG_CONSTRAINT};

use super::rebuilt::owner_by_toast_name;
use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;
use crate::index::Index;
use crate::relation::{Column, RelKind, Relation};

/// What `pg_attribute` and `pg_index` have of relations without a row in `pg_class`.
#[derive(Default)]
pub(crate) struct Rowless {
    pub(crate) columns: BTreeMap<Oid, Vec<Column>>,
    pub(crate) indexes: BTreeMap<Oid, Index>,
}

impl Rowless {
    pub(crate) fn keep_columns(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
        columns: &BTreeMap<Oid, Vec<Column>>,
    ) {
        let rowless = columns
            .iter()
            .filter(|(oid, _)| !relations.contains_key(oid));
        self.columns = rowless
            .map(|(oid, columns)| (*oid, columns.clone()))
            .collect();
    }
}

/// Who mentions a relation without a row.
#[derive(Default)]
pub(crate) struct Mentions {
    by_relation: BTreeMap<Oid, BTreeSet<&'static str>>,
    /// Names and schemas of indexes, which are those of their constraints.
    pub(crate) names: BTreeMap<Oid, (String, Oid)>,
}

/// Catalogs that are read for their mentions alone.
pub(crate) const CATALOGS_WITH_MENTIONS: [Oid; 2] = [PG_CONSTRAINT, PG_ATTRDEF];

impl Mentions {
    fn add(&mut self, relations: &BTreeMap<Oid, Relation>, oid: Oid, by: &'static str) {
        if oid != 0 && !relations.contains_key(&oid) {
            self.by_relation.entry(oid).or_default().insert(by);
        }
    }

    /// Those in what was read already.
    pub(crate) fn of(
        relations: &BTreeMap<Oid, Relation>,
        rowless: &Rowless,
        row_types: impl Iterator<Item = Oid>,
    ) -> Self {
        let mut mentions = Mentions::default();
        let mut add = |oid, by| mentions.add(relations, oid, by);
        row_types.for_each(|oid| add(oid, "pg_type"));
        rowless
            .columns
            .keys()
            .for_each(|oid| add(*oid, "pg_attribute"));
        for (oid, index) in &rowless.indexes {
            add(*oid, "pg_index");
            add(index.table, "pg_index");
        }
        for relation in relations.values() {
            if let Some(index) = &relation.index {
                add(index.table, "pg_index");
            }
            // The table may have been given another one since.
            if relation.kind == RelKind::Toast && relation.toast_of == 0 {
                let owner = owner_by_toast_name(&relation.name);
                add(owner.unwrap_or(0), "the name of its TOAST relation");
            }
        }
        mentions
    }

    /// Those of a row of `pg_constraint` or `pg_attrdef`.
    pub(crate) fn read_row(
        &mut self,
        relations: &BTreeMap<Oid, Relation>,
        catalog: Oid,
        names: &ColumnNames,
        row: &RawRow<'_>,
    ) {
        let oid = |name| row.u32(names.index(name)).unwrap_or(0);
        if catalog == PG_ATTRDEF {
            self.add(relations, oid("adrelid"), "pg_attrdef");
            return;
        }
        for name in ["conrelid", "confrelid", "conindid"] {
            self.add(relations, oid(name), "pg_constraint");
        }
        // The constraint of a foreign key has the index of the other table, and no name of it.
        let index = oid("conindid");
        let is_own = oid("confrelid") == 0 && index != 0 && !relations.contains_key(&index);
        if let Some(name) = row.name(names.index("conname")).filter(|_| is_own) {
            self.names.insert(index, (name, oid("connamespace")));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_relation.is_empty()
    }

    /// By relation who mentions it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Oid, Vec<&'static str>)> {
        let relations = self.by_relation.iter();
        relations.map(|(oid, by)| (*oid, by.iter().copied().collect()))
    }
}
