//! The row versions of one heap page, with a verdict each.

use pgclinic_format::page::{HEADER_BYTES, PD_ALL_VISIBLE};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page};

use super::account::{LossPlace, Tally};
use crate::visible::{Judge, Verdict};

/// What a page is, before its rows are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageState {
    /// Nothing was ever written to it.
    Empty,
    /// Its header makes sense.
    Sound,
    /// Its header makes no sense.
    Broken,
}

impl PageState {
    pub(crate) fn of(page: Page<'_>) -> Self {
        if page.is_new() {
            return match page.is_zeroed() {
                true => PageState::Empty,
                false => PageState::Broken,
            };
        }
        let tells_rows = usize::from(page.pd_lower()) >= HEADER_BYTES;
        match tells_rows && page.header_is_sane_to_the_server() {
            true => PageState::Sound,
            false => PageState::Broken,
        }
    }
}

/// Gives every row version of a sound page to `each`; what a line pointer names without being a row is lost.
pub(crate) fn each_row<'p>(
    page: Page<'p>,
    block: BlockNo,
    judge: &Judge<'_>,
    tally: &mut Tally,
    mut each: impl FnMut(HeapTuple<'p>, Tid, Verdict, &mut Tally),
) {
    // As the server: on a page that says so, all rows are seen without a look at their transactions.
    let all_visible = page.pd_flags() & PD_ALL_VISIBLE != 0;
    for (item, pointer) in page.line_pointers() {
        if pointer.flags() != LpFlags::Normal {
            continue;
        }
        let place = Tid {
            block,
            offset: item,
        };
        let Some(tuple) = page.item(pointer).and_then(HeapTuple::parse) else {
            tally.rows.lost += 1;
            let why = "the line pointer names bytes that are no row";
            tally.lose(LossPlace::row(place, why));
            continue;
        };
        let verdict = match all_visible {
            true => Verdict::Live,
            false => judge.verdict(tuple, place),
        };
        each(tuple, place, verdict, tally);
    }
}
