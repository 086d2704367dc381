//! `xmax` is a transaction that cannot be there: not begun yet, or older than any that may remain.

use pgclinic_cluster::Relation;
use pgclinic_format::Page;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_model::Rule;

use crate::check::{Limits, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{
    StoredTuple, XMAX, cannot_look_up, is_surely_inserted, scan_asks, tuples,
};

/// The rule.
pub static XMAX_IN_THE_FUTURE: Rule =
    Rule::from_page(include_str!("../../rules/xmax-in-the-future.md"));

/// The rule.
pub static XMAX_BEFORE_FREEZE: Rule =
    Rule::from_page(include_str!("../../rules/xmax-before-freeze.md"));

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
