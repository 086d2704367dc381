//! Flags of an update in place that the rest of the same header denies.

use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE, HEAP_UPDATED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, Page, Xid};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{CTID, INFOMASK2, StoredTuple, XMAX, tuples};

/// The rule.
pub static HEAP_ONLY_NOT_UPDATED: Rule =
    Rule::from_page(include_str!("../../rules/heap-only-not-updated.md"));

/// The rule.
pub static HOT_UPDATE_LEADS_NOWHERE: Rule =
    Rule::from_page(include_str!("../../rules/hot-update-leads-nowhere.md"));

/// See [`HEAP_ONLY_NOT_UPDATED`] and [`HOT_UPDATE_LEADS_NOWHERE`].
pub struct HotFlagsAlone;

impl PageCheck for HotFlagsAlone {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HEAP_ONLY_NOT_UPDATED, &HOT_UPDATE_LEADS_NOWHERE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn passes_plain_rows_only(&self) -> bool {
        true
    }

    /// That a successor is gone is no damage: VACUUM before 17 takes a deleted heap-only row away
    /// before the version that led to it, where an old transaction still runs.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let flags = stored.tuple.t_infomask2() & (HEAP_HOT_UPDATED | HEAP_ONLY_TUPLE);
            if flags == 0 {
                continue;
            }
            if is_never_updated(stored.tuple) {
                let message = "heap-only, but not the result of an update".into();
                out.add(stored.draft(&HEAP_ONLY_NOT_UPDATED, message, INFOMASK2));
            }
            if is_hot_updated(stored.tuple) {
                leads_nowhere(stored, cx, out);
            }
        }
    }
}

/// `heap_force_freeze` of the extension `pg_surgery` takes `HEAP_UPDATED` away as well, and leaves
/// a mark of its own: `xmin` 2 and the flags of a frozen row.
fn is_never_updated(tuple: HeapTuple<'_>) -> bool {
    let forced = tuple.t_xmin() == Xid::FROZEN && tuple.has(HEAP_XMIN_FROZEN);
    tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0 && !tuple.has(HEAP_UPDATED) && !forced
}

/// `HeapTupleHeaderIsHotUpdated`, and somebody did more than to lock the row.
fn is_hot_updated(tuple: HeapTuple<'_>) -> bool {
    let xmin_is_invalid = tuple.t_infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_INVALID;
    tuple.t_infomask2() & HEAP_HOT_UPDATED != 0
        && !tuple.has(HEAP_XMAX_INVALID)
        && !tuple.xmax_is_locked_only()
        && !xmin_is_invalid
}

fn leads_nowhere(stored: StoredTuple<'_>, cx: &PageCx<'_>, out: &mut Findings) {
    let (tuple, ctid) = (stored.tuple, stored.tuple.t_ctid());
    if tuple.t_xmax() == Xid::INVALID && !tuple.has(HEAP_XMAX_IS_MULTI) {
        let message = "updated in place, but xmax is 0".into();
        out.add(stored.draft(&HOT_UPDATE_LEADS_NOWHERE, message, XMAX));
    } else if ctid.block == cx.block && ctid.offset == stored.number {
        let message = format!("updated in place, but t_ctid {ctid} is its own place");
        out.add(stored.draft(&HOT_UPDATE_LEADS_NOWHERE, message, CTID));
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn each_flag_needs_the_rest_of_the_header() {
        let tuple = |xmin, xmax, next, infomask2: u16, infomask| {
            let tuple = TupleBuilder::new(1).xids(xmin, xmax).ctid(0, next);
            let mut bytes = tuple.infomask(infomask).finish();
            put_u16(&mut bytes, 18, infomask2 | 1);
            bytes
        };
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(800, 0, 1, 0x8000, 0x2900))
            .item(&tuple(800, 0, 2, 0x8000, 0x0900))
            .item(&tuple(2, 0, 3, 0x8000, 0x0B00))
            .item(&tuple(800, 0, 5, 0x4000, 0x0100))
            .item(&tuple(800, 0, 5, 0x4000, 0x0900))
            .item(&tuple(800, 810, 6, 0x4000, 0x0100))
            .item(&tuple(800, 810, 7, 0x4000, 0x01C0))
            .item(&tuple(800, 810, 8, 0x4000, 0x0200))
            .item(&tuple(800, 810, 9, 0x0000, 0x0100))
            .finish(0);
        let expected = [
            "2 heap-only-not-updated: heap-only, but not the result of an update",
            "4 hot-update-leads-nowhere: updated in place, but xmax is 0",
            "6 hot-update-leads-nowhere: updated in place, but t_ctid (0,6) is its own place",
        ];
        assert_eq!(Trial::table().told(&HotFlagsAlone, &page), expected);
    }
}
