//! `right sibling's left-link doesn't match`: neighbours of an index disagree.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct BtreeSibling;

impl ServerMessage for BtreeSibling {
    fn name(&self) -> &'static str {
        "btree-sibling-links"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX002", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "right sibling's left-link doesn't match: block {block} links to {n} instead of expected {n} in index {relation}",
            "right sibling's left-link doesn't match",
            "left link changed unexpectedly in block {block} of index {relation}",
            "target page left link unexpectedly changed from {n} to {n} in block {block} of index {relation}",
            "right sibling {n} of block {block} is not next child {n} of block {n} in index {relation}",
            "could not find left sibling of block {block} in index {relation}",
            "no left sibling (concurrent deletion?) of block {block} in {relation}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The pages of a btree index on one level form a chain to the right and to the left. Following it, mostly \
in a vacuum or when a page was split, the server saw two neighbours that do not name each other.

One of the two pages is an old or a foreign one: a lost or misdirected write, a page put back from a \
backup, a crash on storage that lies about `fsync`, or a damaged special space. A bug is rare.

It is an index: **no rows are lost**. But until it is rebuilt, queries that use it may miss rows or see \
rows twice, a unique index may let duplicates in, and inserts fail.

It does **not** say that the table is sound. The table's pages lie on the same disk: check them before \
you build the index anew from them. A unique index that let duplicates in cannot be rebuilt until they \
are removed.

**Never** ignore it because \"vacuum is only maintenance\": the index gives wrong answers meanwhile. \
Never rebuild all indexes before the table has been checked and copied."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec![names.reindex()];
        steps.extend(names.look());
        steps.extend([
            "Then check the table as well: what hit the index may have hit more: `".to_owned()
                + &names.check_all_command()
                + "`",
        ]);
        steps
    }
}
