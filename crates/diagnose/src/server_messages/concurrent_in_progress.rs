//! `concurrent insert in progress` and `concurrent delete in progress`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ConcurrentInProgress;

impl ServerMessage for ConcurrentInProgress {
    fn name(&self) -> &'static str {
        "concurrent-change-in-progress"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "01000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "concurrent insert in progress within table {relation}",
            "concurrent delete in progress within table {relation}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
While building an index, or in `VACUUM FULL` or `CLUSTER`, the server holds a lock that keeps all \
writers away. Yet it met a row version whose inserting or deleting transaction seems to be running \
still.

For system catalogs this can be harmless: their locks are given back early, and the server says it as a \
warning. For a table of users it should not happen. Then mostly the tuple header is damaged: random \
bytes in `xmin`, `xmax` or the hint bits, where `xmin` is a number that the commit log holds as \"in \
progress\". A prepared transaction that somebody forgot gives the same picture, and so does a `pg_xact` \
page that was replaced by zeros.

It does **not** mean that anybody is writing at that moment, and waiting does not help when the number \
is nonsense.

At risk are the rows named; rows that are taken as \"in progress\" are left out of the new index, so \
that queries over it give fewer rows.

**Never** go on with the rebuilt index as if nothing had been said."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["See whether something really writes there: `SELECT * FROM pg_locks WHERE relation = '…'::regclass;` and prepared transactions in `pg_prepared_xacts`".to_owned()];
        steps.extend(names.look());
        steps.extend([names.restore()]);
        steps
    }
}
