//! Rows of `pg_constraint` that are lost, of primary and unique keys: an index that serves one is
//! primary, or depends on it in `pg_depend`, and has its name and its columns.

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_CLASS, PG_CONSTRAINT};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{noun_of, verb_of};

use super::rebuilt_rows::Values;
use super::siblings::Gap;
use super::{Catalogs, Row, named_some};

/// The header of an array of one dimension of `int2`, with so many elements from 1.
fn shorts(elements: &[i64]) -> Vec<u8> {
    const INT2: u32 = 21;
    let count = u32::try_from(elements.len()).unwrap_or(0);
    let header = [1, 0, INT2, count, 1];
    let words = header.into_iter().flat_map(u32::to_le_bytes);
    let elements = elements.iter().map(|element| i16::try_from(*element));
    let elements = elements.flat_map(|element| element.unwrap_or(0).to_le_bytes());
    words.chain(elements).collect()
}

impl Catalogs<'_> {
    /// Puts them among the rows that are there.
    pub(super) fn add_rebuilt_constraints(&mut self, gaps: &[Gap]) {
        if !gaps.iter().any(|gap| gap.name == "pg_constraint") {
            return;
        }
        let indexes = self.table("pg_index").iter();
        let served = indexes.filter_map(|index| {
            let oid = index.oid("indexrelid");
            let is_known = || !self.rows("pg_constraint", "conindid", oid).is_empty();
            let is_own = oid >= FIRST_NORMAL_OID && !is_known();
            let constraint = is_own.then(|| self.constraint_of(index)).flatten()?;
            let relation = self.row("pg_class", oid)?;
            // A TOAST relation's primary key is an index alone.
            let table = self.row("pg_class", index.oid("indrelid"))?;
            if table.letter("relkind") == 't' {
                return None;
            }
            let values = self.values_of_key(index, relation, constraint)?;
            Some((self.qualified_relation(relation).ok()?, values))
        });
        let (names, rows): (Vec<String>, Vec<Values>) = served.unzip();
        self.add_rows("pg_constraint", &rows);
        if let (Some(lost), Some(table)) = (
            self.lost.get_mut("pg_constraint"),
            self.tables.get("pg_constraint"),
        ) {
            lost.retain(|row| table.row(row.id()).is_none());
        }
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_constraint: the {noun} of the {keys} {names} {are} put together from pg_index: whether they are INITIALLY DEFERRED is lost",
                noun = noun_of(rows.len() as u64, "row"),
                keys = noun_of(rows.len() as u64, "key"),
                names = named_some(&names),
                are = verb_of(rows.len(), "are"),
            ));
        }
    }

    /// The OID of the constraint that an index serves. A primary key's stays known without
    /// `pg_depend`.
    fn constraint_of(&self, index: Row<'_>) -> Option<Oid> {
        let oid = index.oid("indexrelid");
        let depends = self.rows("pg_depend", "objid", oid);
        let served = depends.iter().find(|row| {
            (row.oid("classid"), row.oid("refclassid")) == (PG_CLASS, PG_CONSTRAINT)
                && row.letter("deptype") == 'i'
        });
        let by_name = || {
            let name = self.row("pg_class", oid)?.name("relname");
            let mut lost = self.lost_rows("pg_constraint");
            let own = lost.find(|row| {
                row.oid("conrelid") == index.oid("indrelid") && row.name("conname") == name
            });
            own.map(|row| row.id())
        };
        let served = served.map(|row| row.oid("refobjid")).or_else(by_name);
        served.or_else(|| index.flag("indisprimary").then_some(oid))
    }

    /// Nothing of one that excludes: its operators stood in the row alone.
    fn values_of_key(&self, index: Row<'_>, relation: Row<'_>, oid: Oid) -> Option<Values> {
        let is_period = index.flag("indisexclusion");
        let letter = match (index.flag("indisprimary"), index.flag("indisunique")) {
            (true, _) => b'p',
            (_, true) => b'u',
            _ => return None,
        };
        let mut lost = self.lost_rows("pg_constraint");
        let parent = lost.find(|row| row.id() == oid);
        let parent = parent.map_or(0, |row| row.oid("conparentid"));
        let columns = index.shorts("indkey");
        let keys = usize::try_from(index.int("indnkeyatts")).unwrap_or(0);
        let number = |value: Oid| value.to_le_bytes().to_vec();
        Some(vec![
            ("oid", number(oid)),
            ("conname", self.words.bytes(&relation.name("relname"))?),
            ("connamespace", number(relation.oid("relnamespace"))),
            ("contype", vec![letter]),
            ("condeferrable", vec![u8::from(!index.flag("indimmediate"))]),
            ("condeferred", vec![0]),
            ("convalidated", vec![1]),
            ("conenforced", vec![1]),
            ("conrelid", number(index.oid("indrelid"))),
            ("conindid", number(index.oid("indexrelid"))),
            ("conparentid", number(parent)),
            ("conislocal", vec![1]),
            ("conkey", shorts(columns.get(..keys)?)),
            ("conperiod", vec![u8::from(is_period)]),
        ])
    }
}
