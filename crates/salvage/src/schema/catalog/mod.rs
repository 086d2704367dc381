//! The system catalogs of one database as plain rows, read offline: every column by its name.
//!
//! Columns come from `pg_attribute`, so that a column which some majors do not have is simply
//! absent. Long values (`pg_node_tree`, function bodies) are put together from the catalog's TOAST
//! relation.

mod array;
mod long_values;
mod members_by_library;
mod read;
mod rebuilt_columns;
mod rebuilt_constraints;
mod rebuilt_extensions;
mod rebuilt_links;
mod rebuilt_names;
mod rebuilt_rows;
mod rebuilt_sequences;
mod rebuilt_types;
mod siblings;
mod table;

pub(crate) use rebuilt_columns::DescribedColumns;
pub(crate) use table::{Row, Table};

use super::long_text::TextStore;
use super::refusal::{Refusal, Written};

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use pgclinic_cluster::{Catalog, CatalogEncoding};
use pgclinic_format::Oid;
use pgclinic_model::{plural, verb_of};

/// The schema of everything that a name without schema is looked up in first.
pub(crate) const PG_CATALOG: Oid = 11;

/// Names that one line has.
const NAMED_MAX: usize = 20;

/// Names with commas between them; of very many the first.
pub(crate) fn named_some(names: &[String]) -> String {
    let beyond = names.len().saturating_sub(NAMED_MAX);
    let first = names.get(..names.len() - beyond).unwrap_or_default();
    let first = first.join(", ");
    if beyond == 0 {
        return first;
    }
    format!("{first} and {}", plural(beyond, "other"))
}

/// The catalogs of a database, and the shared ones.
pub(crate) struct Catalogs<'a> {
    /// Relations and types, for printing values.
    pub(crate) catalog: &'a Catalog,
    /// The major that wrote them.
    pub(crate) major: u16,
    /// How its words are read.
    pub(crate) words: CatalogEncoding,
    tables: HashMap<&'static str, Table>,
    /// What indexes still have of rows that are lost.
    lost: HashMap<&'static str, Table>,
    empty: Table,
    /// Keeps their long values, and the statements made of them.
    pub(crate) store: TextStore,
    /// What could not be read, in words.
    pub(crate) troubles: Vec<String>,
    /// Partitioned tables that are made again as tables of their own, each with the reason, once
    /// they are looked for.
    pub(crate) parents_alone: OnceLock<BTreeMap<Oid, String>>,
}

impl Catalogs<'_> {
    /// A catalog by its name; one that could not be read, or that this major does not have, is
    /// empty.
    pub(crate) fn table(&self, name: &str) -> &Table {
        self.tables.get(name).unwrap_or(&self.empty)
    }

    /// What the indexes of a catalog still have of the rows that it lost, in their key columns;
    /// rows that were deleted before are among them.
    pub(crate) fn lost_rows(&self, name: &str) -> impl Iterator<Item = Row<'_>> {
        self.lost.get(name).unwrap_or(&self.empty).iter()
    }

    /// Rows that are found again, or are there in another version, are not lost.
    fn forget_what_is_known(&mut self) {
        for (name, lost) in &mut self.lost {
            if let Some(table) = self.tables.get(name) {
                lost.retain(|row| row.id() == 0 || table.row(row.id()).is_none());
            }
        }
    }

    /// The row with this OID.
    pub(crate) fn row(&self, table: &str, oid: Oid) -> Option<Row<'_>> {
        self.table(table).row(oid)
    }

    /// The rows whose column `key`, one of the table's keys, has this value.
    pub(crate) fn rows(&self, table: &str, key: &str, value: Oid) -> Vec<Row<'_>> {
        self.table(table).rows_where(key, value)
    }

    /// The row that a catalog without OIDs has for this value of its key.
    pub(crate) fn one(&self, table: &str, key: &str, value: Oid) -> Option<Row<'_>> {
        self.rows(table, key, value).into_iter().next()
    }

    /// A column of a relation by its number.
    pub(crate) fn attribute(&self, relation: Oid, number: i64) -> Option<Row<'_>> {
        let attributes = self.rows("pg_attribute", "attrelid", relation);
        attributes
            .into_iter()
            .find(|row| row.int("attnum") == number)
    }

    /// The same of a row of `pg_class`; refused where not all of them are known.
    pub(crate) fn all_attributes(&self, relation: Row<'_>) -> Written<Vec<Row<'_>>> {
        let attributes = self.attributes(relation.id());
        let count = relation.int("relnatts");
        let is_known = |number: i64| attributes.iter().any(|row| row.int("attnum") == number);
        let missing = (1..=count).filter(|number| !is_known(*number)).count();
        if missing == 0 {
            return Ok(attributes);
        }
        let (columns, are) = (plural(missing, "column"), verb_of(missing, "are"));
        let rest = if usize::try_from(count) == Ok(missing) {
            format!("its {columns} {are} lost from pg_attribute")
        } else {
            format!("{columns} of its {count} {are} lost from pg_attribute")
        };
        Err(Refusal(format!(
            "{rest}; --schema takes what is known of them"
        )))
    }

    /// The user's columns of a relation by number, dropped ones too.
    pub(crate) fn attributes(&self, relation: Oid) -> Vec<Row<'_>> {
        let mut attributes = self.rows("pg_attribute", "attrelid", relation);
        attributes.retain(|row| row.int("attnum") > 0);
        attributes.sort_by_key(|row| row.int("attnum"));
        attributes
    }
}
