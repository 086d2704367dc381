//! `cache lookup failed for …`: the catalogs do not fit together.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct CacheLookupFailed;

impl ServerMessage for CacheLookupFailed {
    fn name(&self) -> &'static str {
        "cache-lookup-failed"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "cache lookup failed for {word} {oid}",
            "cache lookup failed for",
            "could not find tuple for {word} {n}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A row of one system catalog names an object by its number (a type, function, relation, operator …), and \
the search for this number in its own catalog found nothing.

Harmless cause: the object was dropped by somebody else at this moment. It goes away by itself. Another \
one: an extension's leftovers after a forced drop.

If it stays, it is the catalogs: an **index** of the catalog is damaged, so that the row is there but is \
not found; or the **row** is gone: its page was zeroed, its tuple header was damaged so that it is not \
visible, or `pg_xact` was damaged. Somebody may also have deleted rows from catalogs by hand.

At risk is the description of the object, not the rows of tables. A lost type makes every column of that \
type unreadable through SQL, though its bytes are there.

It does **not** mean that a cache is at fault: a restart does not mend it.

**Never** delete or insert rows in `pg_depend`, `pg_class` or others by hand in the only copy, and never \
`DROP … CASCADE` what cannot be looked up: it takes along more than you see."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Try it again in a new session".to_owned(), "Check the catalogs in the stopped copy: `".to_owned() + &names.check_all_command() + "`", "In the copy, try with `PGOPTIONS='-P'` (ignore_system_indexes): if it works then, only catalog indexes are damaged: `REINDEX SYSTEM`".to_owned(), names.restore()]
    }
}
