//! What GIN, GiST, SP-GiST, hash and BRIN indexes say when their pages contradict each other.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct IndexStructure;

impl ServerMessage for IndexStructure {
    fn name(&self) -> &'static str {
        "index-structure-broken"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "XX002", "22023"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "right sibling of gin page is of different type",
            "right sibling of gin page was deleted",
            "index {relation} has wrong tuple order on entry tree page",
            "index {relation} has inconsistent records on page {n} offset {n}",
            "failed to add item to index page in {relation}",
            "failed to add item to index page",
            "failed to re-find parent of a page in index {relation}, block {block}",
            "index {relation} contains an inner tuple marked as invalid",
            "unexpected spgist tuple state",
            "unexpected page type {word} in brin index {relation} block {block}",
            "invalid overflow block number {n}",
            "invalid overflow bit number {n}",
            "index {relation} has wrong hash version",
            "index {relation} metapage incorrectly indicates that deduplication is safe",
            "index {relation} metapage has equalimage field set on unsupported nbtree version",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server followed the pages of an index and came to one that cannot stand there: a neighbour of another kind, a page that \
was deleted, a parent that does not know its child, an overflow page that no bucket can have, a summary where the map of \
ranges should be, or a page with less room than another page says. `amcheck` says the like when it is asked.

One of the pages is an old or a foreign one: a lost or misdirected write, a page put back from a backup, files copied while \
the server was at work, or overwritten bytes. `incorrectly indicates that deduplication is safe` is known of indexes over \
`interval` that a server from before November 2023 made; `marked as invalid` of indexes that were upgraded from before 9.1.

It is an index: **no rows are lost**, the table has them all. But until it is rebuilt, queries that use it may miss rows, \
see rows twice or end with this error, and inserts may spread the damage.

It does **not** say that the table is sound: its pages lie on the same disk. These messages name one page each, and the \
server stops at the first one.

**Never** rebuild all indexes before the table has been checked and copied: a new index over a damaged table hides the loss."
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
