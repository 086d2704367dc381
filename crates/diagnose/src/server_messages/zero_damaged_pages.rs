//! The setting `zero_damaged_pages`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ZeroDamagedPages;

impl ServerMessage for ZeroDamagedPages {
    fn name(&self) -> &'static str {
        "zero-damaged-pages-setting"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &[]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["zero_damaged_pages", "zero damaged pages"]
    }

    fn meaning(&self) -> &'static str {
        "\
A developer setting, off by default, for superusers. With it, a page that the server cannot accept (a \
wrong header, or a wrong checksum) is not an error: the server puts a page of **zeros** in its place in \
memory, warns and goes on.

What it is good for: in a *copy*, when a backup does not exist, to read past a page with a broken header \
in one session. `pg_dump` then gets all other rows.

What it does: the rows on that page are not there for the query. If anything dirties the page, the zeros \
are written, and the rows are gone from disk as well. Indexes go on pointing to them, and foreign keys \
go on promising them.

What it does **not** do: it repairs nothing; it does not help with damaged line pointers, tuple headers, \
TOAST chunks or values, since their pages have a sane header; and turning it off brings nothing back. \
Autovacuum never uses it.

Rows on such a page are often whole: only the header is wrong. Save the page before.

**Never** set it in postgresql.conf, never in the only copy, never before the files are copied."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["See where it is set: `SELECT * FROM pg_settings WHERE name = 'zero_damaged_pages';` and `pg_db_role_setting`; turn it off there".to_owned(), "See what it would throw away, without it: `".to_owned() + &names.check_all_command() + "`"]
    }
}
