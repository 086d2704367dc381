//! `xmax` is a transaction that cannot be there: not begun yet, or older than any that may remain.

use pgclinic_cluster::Relation;
use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_model::{Rule, Severity};

use crate::check::{Limits, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::tuples::{StoredTuple, XMAX, cannot_look_up, is_surely_inserted, scan_asks, tuples};

/// The rule.
pub static XMAX_IN_THE_FUTURE: Rule = Rule {
    name: "xmax-in-the-future",
    severity: Severity::Damage,
    summary: "a row was deleted or locked by a transaction that has not begun yet",
    explain: "\
`xmax` is the transaction that deleted, replaced or locked the row. The control file of this cluster, which \
was shut down in good order, says which number comes next, and `xmax` is not before it.

For now the server shows the row, since to it the delete has not happened. It lasts until the counter \
reaches that number: if the transaction that gets it commits, the row vanishes without anybody having \
deleted it, and VACUUM removes it for good.

One row: `xmax` or the flags beside it were overwritten. Many rows: the counter is too old, because \
`pg_resetwal` was run with a smaller number, an old `pg_control` was put back, or files of another cluster \
were copied in.

Copy the cluster first. For one row, take the page from a backup or a standby, or insert the row anew and \
remove this one. If the counter is wrong, set it on the copy with `pg_resetwal -x` above the highest number \
in use, then dump and load into a new cluster.",
};

/// The rule.
pub static XMAX_BEFORE_FREEZE: Rule = Rule {
    name: "xmax-before-freeze",
    severity: Severity::Damage,
    summary: "a deleting transaction is older than relfrozenxid allows",
    explain: "\
VACUUM removes rows that were deleted long ago, clears the `xmax` of deletes that were rolled back, and \
then notes in `relfrozenxid` that nothing older is left in the table. This row has an `xmax` that is older \
and counts.

Without a hint bit the server asks the commit log; if that part is gone, every scan and dump of the table \
stops with `ERROR:  could not access status of transaction …`. VACUUM stops with `found xmax … from before \
relfrozenxid …` and can no longer freeze the table. If the log still answers, the answer belongs to \
another transaction: the row may vanish, or come back.

Either these bytes were overwritten, or the page is an old version that came back, from an incomplete \
restore or a lost write.

Copy the cluster first, then take the page from a backup or a standby, which also tells whether the row \
was deleted. If it should live, `heap_force_freeze` of the extension `pg_surgery` (14 and later) clears \
`xmax`.",
};

/// See [`XMAX_IN_THE_FUTURE`] and [`XMAX_BEFORE_FREEZE`].
pub struct XmaxBounds;

impl PageCheck for XmaxBounds {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&XMAX_IN_THE_FUTURE, &XMAX_BEFORE_FREEZE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let (Some(limits), Some(relation)) = (cx.fork.reach(), cx.fork.relation) else {
            return;
        };
        let settled = cx.fork.limits.is_some();
        for stored in tuples(page) {
            let tuple = stored.tuple;
            let ignored = tuple.t_infomask() & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI) != 0;
            if ignored || !tuple.t_xmax().is_normal() {
                continue;
            }
            if let Some(draft) = judge(stored, &limits, relation)
                // Before recovery, catalogs may be younger than the page.
                && (settled || draft.rule.name != XMAX_BEFORE_FREEZE.name)
            {
                let xmax = tuple.t_xmax();
                let words = server_words(page, stored, cx)
                    .filter(|_| settled && xmax.precedes(limits.next_xid));
                out.add(
                    words
                        .into_iter()
                        .fold(draft.fact("xmax", xmax.0), Draft::server_says),
                );
            }
        }
    }
}

#[inline]
fn judge(stored: StoredTuple<'_>, limits: &Limits, relation: &Relation) -> Option<Draft> {
    let (xmax, frozen) = (stored.tuple.t_xmax(), relation.relfrozenxid);
    if !xmax.precedes(limits.next_xid) {
        let next = limits.next_xid;
        let message = format!("xmax {xmax} is not before the next transaction {next}");
        let draft = stored.draft(&XMAX_IN_THE_FUTURE, message, XMAX);
        return Some(draft.fact("next_xid", next.0));
    }
    // An old lock may stay where it is until somebody freezes the row.
    let is_old = frozen.is_normal() && xmax.precedes(frozen);
    (is_old && !stored.tuple.xmax_is_locked_only()).then(|| {
        let message = format!("xmax {xmax} is before relfrozenxid {frozen}");
        let draft = stored.draft(&XMAX_BEFORE_FREEZE, message, XMAX);
        draft.fact("relfrozenxid", frozen.0)
    })
}

/// What a scan says when it has to ask the commit log and that part of it is gone.
fn server_words(page: Page<'_>, stored: StoredTuple<'_>, cx: &PageCx<'_>) -> Option<String> {
    let tuple = stored.tuple;
    let asks = scan_asks(page)
        && is_surely_inserted(tuple, cx.fork)
        && !tuple.has(HEAP_XMAX_COMMITTED)
        && !tuple.xmax_is_locked_only();
    asks.then(|| cannot_look_up(tuple.t_xmax(), cx.fork))?
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn both_ends_are_held_but_old_locks_may_stay() {
        let tuple = |xmax, infomask| {
            TupleBuilder::new(1)
                .xids(800, xmax)
                .infomask(infomask)
                .finish()
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(999, 0x0100))
            .item(&tuple(1000, 0x0100))
            .item(&tuple(1000, 0x01C0))
            .item(&tuple(1000, 0x0900))
            .item(&tuple(1000, 0x1100))
            .item(&tuple(699, 0x0100))
            .item(&tuple(699, 0x01C0))
            .item(&tuple(0, 0x0100))
            .finish(0);
        let expected = [
            "2 xmax-in-the-future: xmax 1000 is not before the next transaction 1000",
            "3 xmax-in-the-future: xmax 1000 is not before the next transaction 1000",
            "6 xmax-before-freeze: xmax 699 is before relfrozenxid 700",
        ];
        assert_eq!(Trial::table().told(&XmaxBounds, &page), expected);
    }
}
