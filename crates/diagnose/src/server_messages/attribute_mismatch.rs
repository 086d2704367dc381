//! `catalog is missing … attribute(s)`, `attribute … has wrong type`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct AttributeMismatch;

impl ServerMessage for AttributeMismatch {
    fn name(&self) -> &'static str {
        "attribute-mismatch"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "42P16", "42804"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "pg_attribute catalog is missing {n} attribute(s) for relation oid {oid}",
            "catalog is missing {n} attribute(s) for relid {oid}",
            "attribute {n} of type {word} has wrong type",
            "attribute {n} has wrong type",
            "could not find attribute {n} in",
            "invalid attribute number {n}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`pg_class` says how many columns a relation has, and `pg_attribute` has one row for each. The server \
counted fewer rows, or a plan expects another type at that place than the relation has.

`has wrong type` is mostly **harmless**: a session kept a plan or a row type from before an `ALTER \
TABLE`. A new session, or recreating the function or view, mends it.

`catalog is missing N attribute(s)` is not: rows of `pg_attribute` are gone or not found. A page of this \
catalog was zeroed or damaged, a tuple header is wrong so that the row is invisible, or its index does \
not lead there.

The rows of the table are untouched, but nothing can read them without knowing their columns. A `CREATE \
TABLE` statement from a schema dump, a migration script or a standby tells what they were.

It does **not** mean that columns were dropped: dropped ones keep their row.

**Never** insert rows into `pg_attribute` by hand in the only copy, and never run `VACUUM FULL` on the \
catalog: it writes down only what it still sees."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Check the catalogs in the stopped copy: `".to_owned() + &names.check_all_command() + "`", "In the copy, try with `PGOPTIONS='-P'` (ignore_system_indexes): if it works then, only a catalog index is damaged: `REINDEX TABLE pg_attribute`".to_owned(), names.restore()]
    }
}
