//! `could not open relation with OID`: no row in `pg_class`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct MissingRelation;

impl ServerMessage for MissingRelation {
    fn name(&self) -> &'static str {
        "could-not-open-relation"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["could not open relation with oid {oid}"]
    }

    fn meaning(&self) -> &'static str {
        "\
Something in the catalogs names a relation by its number, and `pg_class` has no row with this number, or \
the index of `pg_class` does not lead to it.

Harmless cause, and by far the most frequent one: the table was dropped or is a temporary table of a \
session that ended, while this statement was planned. It goes away by itself.

If it stays: the **index** `pg_class_oid_index` is damaged (the row is there, a search does not find \
it), or the **row** is (its page was zeroed, or its tuple is not visible because of a damaged `xmin` or \
a lost `pg_xact` page). Then many statements fail, often already the connection.

At risk is the description of that relation: its name, columns and file number. Its file with the rows \
is not touched. `pg_attribute` still has its columns.

It does **not** mean that the rows are lost, as long as nobody cleans the files up.

**Never** insert or delete rows of system catalogs by hand in the only copy."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Try it again in a new session; if it is gone, it was a concurrent DROP".to_owned(), "Check the catalogs in the stopped copy: `".to_owned() + &names.check_all_command() + "`", "In the copy, try with `PGOPTIONS='-P'` (ignore_system_indexes): if it works then, rebuild the catalog's indexes with `REINDEX SYSTEM`, in single-user mode if need be".to_owned(), names.restore()]
    }
}
