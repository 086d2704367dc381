//! `index … contains unexpected zero page` or `corrupted page`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct IndexPageCorrupted;

impl ServerMessage for IndexPageCorrupted {
    fn name(&self) -> &'static str {
        "index-page-corrupted"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX002"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "index {relation} contains unexpected zero page at block {block}",
            "index {relation} contains corrupted page at block {block}",
            "unexpected zero page at block {block}",
            "index {relation} is not a btree",
            "index {relation} is not a hash index",
            "corrupted brin index",
            "inconsistent range map",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server followed a link inside an index and came to a page that is all zero, or whose special space \
is not one of this kind of index.

A zero page where a link leads to one means that the page was written once and is lost: zeroed by the \
disk, by `zero_damaged_pages`, or never flushed before a crash on storage that lies about it. A \
corrupted page is one of another relation, or one whose end was overwritten.

It is an index: **no rows are lost**, the table has them all. Until it is rebuilt, statements that use \
this part of the index fail; others may quietly see too few rows.

It does **not** say that the table is sound. What zeroed a page of the index may have zeroed pages of \
the table as well, and there zero pages are legal and raise no error: compare row counts with a backup.

The HINT of the server is right here: `REINDEX`. But check the table first, since a new index over a \
damaged table hides the loss.

**Never** drop the index of a primary key or a unique constraint without building the new one first: \
duplicates come in meanwhile."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec![names.reindex()];
        steps.extend(names.look());
        steps
    }
}
