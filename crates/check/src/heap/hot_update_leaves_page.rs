//! An update in place whose next version is on another page.

use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_XMAX_INVALID, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::{HeapTuple, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{CTID, tuples};

/// The rule.
pub static HOT_UPDATE_LEAVES_PAGE: Rule =
    Rule::from_page(include_str!("../../rules/hot-update-leaves-page.md"));

/// See [`HOT_UPDATE_LEAVES_PAGE`].
pub struct HotUpdateLeavesPage;

impl PageCheck for HotUpdateLeavesPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HOT_UPDATE_LEAVES_PAGE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let ctid = stored.tuple.t_ctid();
            if ctid.block == cx.block || !is_hot_updated(stored.tuple) {
                continue;
            }
            let message = format!(
                "HEAP_HOT_UPDATED on block {}, but t_ctid {ctid} is on another",
                cx.block
            );
            let draft = stored.draft(&HOT_UPDATE_LEAVES_PAGE, message, CTID);
            out.add(draft.fact("ctid_block", ctid.block));
        }
    }
}

/// `HeapTupleHeaderIsHotUpdated`: the flag counts only while the update may have happened.
fn is_hot_updated(tuple: HeapTuple<'_>) -> bool {
    let xmin_is_invalid = tuple.t_infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_INVALID;
    tuple.t_infomask2() & HEAP_HOT_UPDATED != 0 && !tuple.has(HEAP_XMAX_INVALID) && !xmin_is_invalid
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder, put_u16};

    use super::*;
    use crate::trial::Trial;

    fn tuple(block: u32, infomask2: u16, infomask: u16) -> Vec<u8> {
        let tuple = TupleBuilder::new(1).xids(800, 900).ctid(block, 2);
        let mut bytes = tuple.infomask(infomask).finish();
        put_u16(&mut bytes, 18, infomask2);
        bytes
    }

    #[test]
    fn only_a_hot_update_must_stay() {
        let page = PageBuilder::new(8192, &[])
            .item(&tuple(3, 0x4001, 0x0100))
            .item(&tuple(7, 0x0001, 0x0100))
            .item(&tuple(7, 0x4001, 0x0900))
            .item(&tuple(7, 0x4001, 0x0200))
            .item(&tuple(7, 0x4001, 0x0100))
            .finish(3);
        let trial = Trial {
            block: 3,
            ..Trial::table()
        };
        let expected = "5 hot-update-leaves-page: HEAP_HOT_UPDATED on block 3, \
                        but t_ctid (7,2) is on another";
        assert_eq!(trial.told(&HotUpdateLeavesPage, &page), [expected]);
    }
}
