//! `xmin` is a transaction that cannot be there: not begun yet, or older than any unfrozen row.

use pgclinic_cluster::Relation;
use pgclinic_format::heap_tuple::{HEAP_MOVED, HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID};
use pgclinic_format::{Page, Xid};
use pgclinic_model::Rule;

use crate::check::{Limits, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{StoredTuple, XMIN, cannot_look_up, scan_asks, tuples};

/// The rule.
pub static XMIN_IN_THE_FUTURE: Rule =
    Rule::from_page(include_str!("../../rules/xmin-in-the-future.md"));

/// The rule.
pub static XMIN_BEFORE_FREEZE: Rule =
    Rule::from_page(include_str!("../../rules/xmin-before-freeze.md"));

/// See [`XMIN_IN_THE_FUTURE`] and [`XMIN_BEFORE_FREEZE`].
pub struct XminBounds;

impl PageCheck for XminBounds {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&XMIN_IN_THE_FUTURE, &XMIN_BEFORE_FREEZE] }
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
            let counts = tuple.t_xmin().is_normal() && !tuple.xmin_is_frozen();
            if !counts || tuple.t_infomask() & HEAP_MOVED != 0 {
                continue;
            }
            if let Some(draft) = judge(stored, &limits, relation)
                // Before recovery, catalogs may be younger than the page.
                && (settled || draft.rule.name != XMIN_BEFORE_FREEZE.name)
            {
                let xmin = tuple.t_xmin();
                let words = server_words(page, stored, cx)
                    .filter(|_| settled && xmin.precedes(limits.next_xid));
                out.add(
                    words
                        .into_iter()
                        .fold(draft.fact("xmin", xmin.0), Draft::server_says),
                );
            }
        }
    }
}

#[inline]
fn judge(stored: StoredTuple<'_>, limits: &Limits, relation: &Relation) -> Option<Draft> {
    let (xmin, frozen) = (stored.tuple.t_xmin(), relation.relfrozenxid);
    if !xmin.precedes(limits.next_xid) {
        let next: Xid = limits.next_xid;
        let message = format!("xmin {xmin} is not before the next transaction {next}");
        let draft = stored.draft(&XMIN_IN_THE_FUTURE, message, XMIN);
        return Some(draft.fact("next_xid", next.0));
    }
    (frozen.is_normal() && xmin.precedes(frozen)).then(|| {
        let message = format!("xmin {xmin} is not frozen and is before relfrozenxid {frozen}");
        let draft = stored.draft(&XMIN_BEFORE_FREEZE, message, XMIN);
        draft.fact("relfrozenxid", frozen.0)
    })
}

/// What a scan says when it has to ask the commit log and that part of it is gone.
fn server_words(page: Page<'_>, stored: StoredTuple<'_>, cx: &PageCx<'_>) -> Option<String> {
    let hinted = stored.tuple.t_infomask() & (HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID) != 0;
    let asks = scan_asks(page) && !hinted;
    asks.then(|| cannot_look_up(stored.tuple.t_xmin(), cx.fork))?
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    fn page() -> Vec<u8> {
        let tuple = |xmin, infomask| {
            TupleBuilder::new(1)
                .xids(xmin, 0)
                .infomask(infomask)
                .finish()
        };
        PageBuilder::new(8192, &[])
            .item(&tuple(999, 0x0800))
            .item(&tuple(1000, 0x0800))
            .item(&tuple(2_000_000_000, 0x0900))
            .item(&tuple(700, 0x0900))
            .item(&tuple(699, 0x0900))
            .item(&tuple(4_000_000_000, 0x0800))
            .item(&tuple(3, 0x0B00))
            .item(&tuple(2, 0x0800))
            .item(&tuple(0, 0x0800))
            .item(&tuple(3, 0x4900))
            .finish(0)
    }

    #[test]
    fn both_ends_are_held_and_what_is_frozen_may_be_anything() {
        let expected = [
            "2 xmin-in-the-future: xmin 1000 is not before the next transaction 1000",
            "3 xmin-in-the-future: xmin 2000000000 is not before the next transaction 1000",
            "5 xmin-before-freeze: xmin 699 is not frozen and is before relfrozenxid 700",
            "6 xmin-before-freeze: xmin 4000000000 is not frozen and is before relfrozenxid 700",
        ];
        assert_eq!(Trial::table().told(&XminBounds, &page()), expected);
    }

    #[test]
    fn without_limits_nothing_is_impossible() {
        let trial = Trial {
            limits: None,
            ..Trial::table()
        };
        assert!(trial.told(&XminBounds, &page()).is_empty());
    }
}
