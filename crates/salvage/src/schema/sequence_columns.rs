//! Sequences whose values are lost: a statement that sets one behind the values that its columns
//! have.

use std::collections::BTreeSet;

use pgclinic_format::Oid;

use super::Catalogs;
use super::ddl::columns_filled_by;
use super::identifier::literal;

/// The columns that take their values from a sequence.
pub(crate) struct SequenceColumns {
    /// `public.t.id`, each as SQL has it.
    pub(crate) columns: Vec<String>,
    /// Sets the sequence on the last of their values, if that is behind its own, and gives it.
    pub(crate) statement: String,
}

/// A column, with its table.
struct Filled {
    table: String,
    column: String,
}

impl SequenceColumns {
    /// Of this sequence; nothing where no column of numbers is known to take its values.
    pub(crate) fn of(catalogs: &Catalogs<'_>, sequence: Oid) -> Option<Self> {
        let own = catalogs.one("pg_sequence", "seqrelid", sequence)?;
        let name = catalogs.relation_name(sequence).ok()?;
        let filled: BTreeSet<(Oid, i64)> = columns_filled_by(catalogs, sequence).collect();
        let filled: Vec<Filled> = filled
            .into_iter()
            .filter_map(|(table, number)| Filled::of(catalogs, table, number))
            .collect();
        if filled.is_empty() {
            return None;
        }
        let (last, after) = match own.int("seqincrement") {
            ..0 => ("min", "<"),
            _ => ("max", ">"),
        };
        let (least, most) = (own.int("seqmin"), own.int("seqmax"));
        let values: Vec<String> = filled
            .iter()
            .map(|Filled { table, column }| {
                format!(
                    "SELECT pg_catalog.{last}({column})::pg_catalog.int8 AS value FROM {table} WHERE {column} BETWEEN {least} AND {most}"
                )
            })
            .collect();
        let (values, setval) = (values.join(" UNION ALL "), literal(&name));
        Some(SequenceColumns {
            columns: filled.iter().map(Filled::words).collect(),
            statement: format!(
                "SELECT pg_catalog.setval({setval}, found.value, true) \
                 FROM (SELECT pg_catalog.{last}(value) AS value FROM ({values}) AS of_columns) AS found, {name} AS own \
                 WHERE found.value {after} own.last_value OR (found.value = own.last_value AND NOT own.is_called);"
            ),
        })
    }
}

impl Filled {
    fn of(catalogs: &Catalogs<'_>, table: Oid, number: i64) -> Option<Self> {
        /// `int8`, `int2`, `int4` and `numeric`.
        const NUMBERS: [Oid; 4] = [20, 21, 23, 1700];
        let column = catalogs.attribute(table, number)?;
        let is_number = NUMBERS.contains(&column.oid("atttypid"));
        (is_number && !column.flag("attisdropped")).then_some(())?;
        Some(Filled {
            table: catalogs.relation_name(table).ok()?,
            column: catalogs.quoted(&column.name("attname")),
        })
    }

    fn words(&self) -> String {
        format!("{}.{}", self.table, self.column)
    }
}
