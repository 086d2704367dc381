//! `item order invariant violated` and the other findings of amcheck on indexes.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct BtreeOrder;

impl ServerMessage for BtreeOrder {
    fn name(&self) -> &'static str {
        "index-order-violated"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX002"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "item order invariant violated for index {relation}",
            "high key invariant violated for index {relation}",
            "down-link lower bound invariant violated for index {relation}",
            "lacks matching index tuple within index {relation}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`amcheck` found keys of an index in the wrong order, or a row of the table that the index does not have.

There are two causes. The usual one is **no damage on disk**: the order of text changed with a new \
operating system or library (glibc 2.28 is the famous one, ICU upgrades are others, and a standby or \
restored copy on another distribution). The index is in the old order and searched in the new one. Then \
*all* indexes over text in a non-C collation are suspect, and numbers and dates are fine. The other one \
is real damage: an old page, a lost write, wrong bytes in a key.

`lacks matching index tuple`: the index misses a row. Queries that use it do not find the row, and a \
unique index lets a second one in.

No rows are lost by the index. But the answers of queries are wrong until it is rebuilt, and duplicates \
may stand in unique columns already.

**Never** go on with `ALTER COLLATION … REFRESH VERSION` alone: it only silences the warning. Rebuild \
first."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Find out whether the sort order changed: `SELECT collname, collversion, pg_collation_actual_version(oid) FROM pg_collation WHERE collversion IS NOT NULL;` and what was upgraded".to_owned(), names.reindex()];
        steps.extend(names.look());
        steps
    }
}
