//! Rows of `pg_sequence` that are lost: the sequence goes on with its value, and what else the row
//! had is what a new one of the same type has.

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_format::oid::PG_CLASS;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{noun_of, verb_of};

use super::read::files_of;
use super::rebuilt_rows::Values;
use super::{Catalogs, Row, named_some};
use crate::sequence_page::value_of_file;

const INT8: Oid = 20;
const INT2: Oid = 21;
const INT4: Oid = 23;

impl Catalogs<'_> {
    /// Puts them among the rows that are there.
    pub(super) fn add_rebuilt_sequences(&mut self, cluster: &Cluster) {
        let relations = self.table("pg_class").iter();
        let mut lost = relations
            .filter(|row| {
                let is_known = || self.one("pg_sequence", "seqrelid", row.id()).is_some();
                row.letter("relkind") == 'S' && row.id() >= FIRST_NORMAL_OID && !is_known()
            })
            .peekable();
        if lost.peek().is_none() {
            return;
        }
        let files = files_of(cluster, self.catalog.database);
        let found = lost.map(|row| {
            let relation = self.catalog.relations.get(&row.id());
            let own =
                relation.and_then(|relation| files.get(&(relation.tablespace, relation.filenode)));
            let value = own.and_then(|own| value_of_file(cluster, own).ok());
            let value = value.map_or(1, |value| value.last_value);
            let name = self.qualified_relation(row);
            let values = self.values_of_sequence(row, value);
            (name.unwrap_or_else(|_| row.name("relname")), values)
        });
        let (names, rows): (Vec<String>, Vec<Values>) = found.unzip();
        self.add_rows("pg_sequence", &rows);
        self.troubles.push(format!(
            "pg_sequence: the {noun} of {names} {are} lost: first value, step, bounds, cache and CYCLE are those of a new sequence",
            noun = noun_of(rows.len() as u64, "row"),
            names = named_some(&names),
            are = verb_of(rows.len(), "are"),
        ));
    }

    fn values_of_sequence(&self, row: Row<'_>, value: i64) -> Values {
        let ty = self.type_of_owner(row.id()).unwrap_or(INT8);
        let (least, most) = match ty {
            INT2 => (i16::MIN.into(), i16::MAX.into()),
            INT4 => (i32::MIN.into(), i32::MAX.into()),
            _ => (i64::MIN, i64::MAX),
        };
        let is_within = (least..=most).contains(&value);
        let (ty, least, most) = if is_within {
            (ty, least, most)
        } else {
            (INT8, i64::MIN, i64::MAX)
        };
        // A value below that of a new one is within the bounds of one that goes down.
        let least = if value < 1 { least } else { 1 };
        let number = |value: i64| value.to_le_bytes().to_vec();
        vec![
            ("seqrelid", row.id().to_le_bytes().into()),
            ("seqtypid", ty.to_le_bytes().into()),
            ("seqstart", number(1)),
            ("seqincrement", number(1)),
            ("seqmax", number(most)),
            ("seqmin", number(least)),
            ("seqcache", number(1)),
            ("seqcycle", vec![0]),
        ]
    }

    /// The type of the column that owns it, where a sequence may be of it.
    fn type_of_owner(&self, sequence: Oid) -> Option<Oid> {
        let depends = self.rows("pg_depend", "objid", sequence);
        let owner = depends.iter().find(|row| {
            (row.oid("classid"), row.oid("refclassid")) == (PG_CLASS, PG_CLASS)
                && row.int("refobjsubid") > 0
        })?;
        let column = self.attribute(owner.oid("refobjid"), owner.int("refobjsubid"))?;
        let ty = column.oid("atttypid");
        [INT2, INT4, INT8].contains(&ty).then_some(ty)
    }
}
