//! `failed to re-find parent key`: the levels of an index disagree.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct BtreeParent;

impl ServerMessage for BtreeParent {
    fn name(&self) -> &'static str {
        "btree-parent-key"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX002", "XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "failed to re-find parent key in index {relation} for split pages {block}/{n}",
            "failed to re-find parent key in index {relation} for deletion target page {block}",
            "failed to re-find parent key in index {relation}",
            "failed to re-find parent key",
            "failed to re-find tuple within index {relation}",
            "failed to re-find parent of a page in index {relation}, block {block}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
When a page of an index is split or deleted, its parent must be changed too. The server went up to the \
parent and did not find the entry that leads down to the page.

So the levels of the index do not fit together: one page is older than the other (a lost write, a \
restored page, a torn state after a crash with `fsync` or `full_page_writes` off), or keys stand in \
another order than they are searched in. The last happens **without any damage** when the operating \
system's sort order changed (a new glibc or ICU): all indexes over text are then suspect, and each needs \
a `REINDEX`.

No rows are lost: the table has them. But searches in this index may miss rows, and inserts into that \
region fail. In releases before 9.4 it could stop recovery.

It does **not** mean that the whole cluster is damaged. Ask first what was upgraded lately.

`amcheck` (`bt_index_parent_check`) shows the place in a live server.

**Never** leave a unique index in that state: duplicates get in and keep the next `REINDEX` from \
working."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec![names.reindex()];
        steps.extend(names.look());
        steps
    }
}
