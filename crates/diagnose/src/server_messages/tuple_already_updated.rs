//! `tuple already updated by self`, `attempted to update invisible tuple`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct TupleAlreadyUpdated;

impl ServerMessage for TupleAlreadyUpdated {
    fn name(&self) -> &'static str {
        "tuple-already-updated"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "27000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "tuple already updated by self",
            "tuple concurrently updated",
            "tuple concurrently deleted",
            "attempted to update invisible tuple",
            "attempted to delete invisible tuple",
            "attempted to lock invisible tuple",
            "attempted to update or delete invisible tuple",
            "attempted to overwrite invisible tuple",
            "failed to find parent tuple for heap-only tuple at ({block},{item}) in table {relation}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server went to change a row version and found that it cannot be changed: this very command did so \
already, another one did, or the version is not visible at all.

Mostly no damage: `tuple concurrently updated` is two sessions that run the same `GRANT`, `ANALYZE`, \
`CREATE OR REPLACE FUNCTION` or `ALTER` on one object at the same time. Try again, one at a time. A \
trigger that changes the row being changed gives `was already modified by an operation triggered by the \
current command`.

When it stays, with one session alone, it points to storage: an **index of a catalog has two entries for \
one row** or leads to an old version; a tuple's `t_ctid`, `xmax` or hint bits are damaged, so that a \
chain of versions leads back to itself or a root is lost (`failed to find parent tuple for heap-only \
tuple`, from building an index); or a page of an older day came back.

At risk are the row versions of that chain: an old one may show up as current.

It does **not** mean that locking is broken.

**Never** set hint bits or kill tuples with `pg_surgery` before the page was looked at in a copy."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec![
            "Try it again alone: if two sessions did the same DDL or GRANT, it is gone".to_owned(),
        ];
        steps.extend(names.look());
        steps.extend([names.mend()]);
        steps
    }
}
