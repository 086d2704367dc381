//! The neighbours of a row version in its HOT chain. Truth: `heap_hot_search_buffer` in
//! `src/backend/access/heap/heapam.c`, `src/backend/access/heap/README.HOT`.
//!
//! ```text
//! index entry ─► redirect ─► item ─► newer        or        index entry ─► older ─► item ─► newer
//! ```

use pgclinic_format::heap_tuple::{HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE, HEAP_XMAX_INVALID};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page};

/// Line pointers beside one on its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Chain {
    /// `LP_REDIRECT` to the item.
    pub(super) redirect: Option<u16>,
    /// The version before, with a row.
    pub(super) older: Option<u16>,
    /// The heap-only version after it. Its transactions are not compared: where they are damaged,
    /// the link is all that leads to it.
    pub(super) newer: Option<u16>,
}

impl Chain {
    /// Of an item.
    pub(super) fn of(page: Page<'_>, block: BlockNo, item: u16) -> Self {
        let redirects = page.line_pointers().filter(|(_, pointer)| {
            pointer.flags() == LpFlags::Redirect && pointer.lp_off() == item
        });
        let own = Tid {
            block,
            offset: item,
        };
        let older = page.line_pointers().filter(|(number, _)| {
            *number != item && hot_link(page, *number).is_some_and(|next| next == own)
        });
        Chain {
            redirect: redirects.map(|(number, _)| number).next(),
            older: older.map(|(number, _)| number).next(),
            newer: newer(page, block, item),
        }
    }
}

/// Where the row says its next version on this page stands, as `HeapTupleHeaderIsHotUpdated` has
/// it.
fn hot_link(page: Page<'_>, item: u16) -> Option<Tid> {
    let tuple = tuple_of(page, item)?;
    let is_hot = tuple.t_infomask2() & HEAP_HOT_UPDATED != 0 && !tuple.has(HEAP_XMAX_INVALID);
    is_hot.then(|| tuple.t_ctid())
}

fn newer(page: Page<'_>, block: BlockNo, item: u16) -> Option<u16> {
    let next = hot_link(page, item)?;
    (next.block == block && next.offset != item).then_some(())?;
    let tuple = tuple_of(page, next.offset)?;
    (tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0).then_some(next.offset)
}

fn tuple_of(page: Page<'_>, item: u16) -> Option<HeapTuple<'_>> {
    let pointer = page.line_pointer(item)?;
    (pointer.flags() == LpFlags::Normal).then_some(())?;
    HeapTuple::parse(page.item(pointer)?)
}
