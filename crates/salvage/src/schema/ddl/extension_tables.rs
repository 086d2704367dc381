//! Which rows of an extension's tables are its own: what `CREATE EXTENSION` makes is made again by
//! it, and what a user added stands in the tables that the extension marked, as far as its
//! condition says so.
//!
//! Truth: `processExtensionTables` in `src/bin/pg_dump/pg_dump.c`.

use pgclinic_format::Oid;

use super::super::catalog::Catalogs;
use super::item::{class, extension_of};

/// A table that an extension made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExtensionTable {
    /// The extension's name.
    pub(crate) extension: String,
    /// Which rows a user may have added: `WHERE …`, or empty for all. Nothing where the extension
    /// marks none.
    pub(crate) users_rows: Option<String>,
}

/// What an extension says of this table; nothing where the table is a user's own.
pub(crate) fn extension_table(catalogs: &Catalogs<'_>, relation: Oid) -> Option<ExtensionTable> {
    let oid = extension_of(catalogs, class::RELATION, relation)?;
    let row = catalogs.row("pg_extension", oid)?;
    let marked = row.oids("extconfig");
    let mut conditions = row.texts("extcondition").into_iter();
    let at = marked.iter().position(|table| *table == relation);
    let users_rows = at.map(|at| conditions.nth(at).unwrap_or_default());
    // Where its row is lost, nothing says what it marked: any row may be a user's.
    let is_lost = !row.has("extversion");
    let users_rows = users_rows.or_else(|| is_lost.then(String::new));
    Some(ExtensionTable {
        extension: row.name("extname"),
        users_rows,
    })
}
