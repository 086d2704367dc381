//! A page as recovery changes it: new, with an item more, compacted.
//!
//! Truth: `src/backend/storage/page/bufpage.c`.

use super::{RedoBlock, RedoFault};
use crate::build::{put_u16, put_u32};
use crate::bytes::u32_at;
use crate::line_pointer::{LinePointer, LpFlags};
use crate::page::{HEADER_BYTES, LAYOUT_VERSION, PD_ALL_VISIBLE, Page};
use crate::sequence::{SEQUENCE_MAGIC, SPECIAL_BYTES};
use crate::types::Xid;
use crate::wal::record::Record;

const FLAGS_AT: usize = 10;
const LOWER_AT: usize = 12;
const UPPER_AT: usize = 14;
const SPECIAL_AT: usize = 16;
const SIZE_AT: usize = 18;
const PRUNE_AT: usize = 20;

/// `PageInit`.
#[expect(clippy::cast_possible_truncation, reason = "24")]
pub(crate) fn init(page: &mut [u8], special: usize) {
    let len = page.len();
    page.fill(0);
    // Block sizes fit in 16 bits but for the largest, whose offsets do, too.
    let start = u16::try_from(len.saturating_sub(special)).unwrap_or(u16::MAX);
    put_u16(page, LOWER_AT, HEADER_BYTES as u16);
    put_u16(page, UPPER_AT, start);
    put_u16(page, SPECIAL_AT, start);
    let size = u16::try_from(len).unwrap_or(0x8000);
    put_u16(page, SIZE_AT, size | u16::from(LAYOUT_VERSION));
}

/// `PageAddItem`, over an unused line pointer or behind the last.
pub(crate) fn add_item(page: &mut [u8], item: &[u8], number: u16) -> Result<(), RedoFault> {
    let view = Page::parse(page).ok_or(RedoFault::Page)?;
    let count = view.line_pointer_count();
    let is_behind = number == count.saturating_add(1);
    let is_free = view
        .line_pointer(number)
        .is_some_and(|pointer| pointer.flags() == LpFlags::Unused);
    (number > 0 && (is_behind || is_free))
        .then_some(())
        .ok_or(RedoFault::Page)?;
    let lower = usize::from(view.pd_lower()) + if is_behind { LinePointer::SIZE } else { 0 };
    let upper = usize::from(view.pd_upper())
        .checked_sub(item.len().next_multiple_of(8))
        .filter(|upper| *upper >= lower)
        .ok_or(RedoFault::Page)?;
    let slot = page.get_mut(upper..upper + item.len());
    slot.ok_or(RedoFault::Page)?.copy_from_slice(item);
    let (offset, len) = (small(upper)?, small(item.len())?);
    put_pointer(page, number, LinePointer::new(offset, LpFlags::Normal, len));
    put_u16(page, LOWER_AT, small(lower)?);
    put_u16(page, UPPER_AT, offset);
    Ok(())
}

fn small(number: usize) -> Result<u16, RedoFault> {
    u16::try_from(number).map_err(|_| RedoFault::Page)
}

/// Overwrites a line pointer.
pub(crate) fn put_pointer(page: &mut [u8], number: u16, pointer: LinePointer) {
    if let Some(index) = usize::from(number).checked_sub(1) {
        put_u32(page, HEADER_BYTES + index * LinePointer::SIZE, pointer.0);
    }
}

/// The bytes of the row that a line pointer names, to change them.
pub(crate) fn row(page: &mut [u8], number: u16) -> Result<&mut [u8], RedoFault> {
    let view = Page::parse(page).ok_or(RedoFault::Page)?;
    let pointer = view.line_pointer(number).ok_or(RedoFault::Page)?;
    let is_row = pointer.flags() == LpFlags::Normal
        && usize::from(pointer.lp_len()) >= crate::heap_tuple::HEADER_BYTES;
    let range = pointer.range().filter(|_| is_row).ok_or(RedoFault::Page)?;
    page.get_mut(range).ok_or(RedoFault::Page)
}

/// How rows stand after those between them are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowOrder {
    /// As they stood: up to 13.
    Kept,
    /// As their line pointers, from 14 on.
    OfLinePointers,
}

/// `PageRepairFragmentation`: rows move to the end of the page.
pub(crate) fn compact(page: &mut [u8], order: RowOrder) -> Result<(), RedoFault> {
    let view = Page::parse(page).ok_or(RedoFault::Page)?;
    let special = usize::from(view.pd_special()).min(page.len());
    let mut items: Vec<(u16, Vec<u8>, usize)> = Vec::new();
    for (number, pointer) in view.line_pointers() {
        if pointer.lp_len() > 0 {
            let bytes = view.item(pointer).ok_or(RedoFault::Page)?;
            items.push((number, bytes.to_vec(), usize::from(pointer.lp_off())));
        }
    }
    let pointers: Vec<(u16, LinePointer)> = view.line_pointers().collect();
    if order == RowOrder::Kept {
        items.sort_by_key(|(_, _, offset)| std::cmp::Reverse(*offset));
    }
    let mut upper = special;
    for (number, bytes, _) in items {
        upper = upper
            .checked_sub(bytes.len().next_multiple_of(8))
            .ok_or(RedoFault::Page)?;
        let slot = page.get_mut(upper..upper + bytes.len());
        slot.ok_or(RedoFault::Page)?.copy_from_slice(&bytes);
        let before = pointers.get(usize::from(number) - 1);
        let flags = before.map_or(LpFlags::Normal, |(_, pointer)| pointer.flags());
        let pointer = LinePointer::new(small(upper)?, flags, small(bytes.len())?);
        put_pointer(page, number, pointer);
    }
    put_u16(page, UPPER_AT, small(upper)?);
    Ok(())
}

/// `PageTruncateLinePointerArray`: unused line pointers at the end are given up, but for the first
/// `kept` of the page.
pub(crate) fn truncate_pointers(page: &mut [u8], kept: u16) -> Result<(), RedoFault> {
    let view = Page::parse(page).ok_or(RedoFault::Page)?;
    let used = view
        .line_pointers()
        .filter(|(_, pointer)| pointer.flags() != LpFlags::Unused);
    let last = usize::from(used.map(|(number, _)| number).last().unwrap_or(kept));
    put_u16(
        page,
        LOWER_AT,
        small(HEADER_BYTES + last * LinePointer::SIZE)?,
    );
    Ok(())
}

fn change_flags(page: &mut [u8], change: impl FnOnce(u16) -> u16) {
    let flags = Page::parse(page).map_or(0, Page::pd_flags);
    put_u16(page, FLAGS_AT, change(flags));
}

/// `PageClearAllVisible`.
pub(crate) fn clear_all_visible(page: &mut [u8]) {
    change_flags(page, |flags| flags & !PD_ALL_VISIBLE);
}

/// `PageSetAllVisible`.
pub(crate) fn set_all_visible(page: &mut [u8]) {
    change_flags(page, |flags| flags | PD_ALL_VISIBLE);
}

/// `PageSetPrunable`.
pub(crate) fn set_prunable(page: &mut [u8], xid: Xid) {
    let before = Xid(u32_at(page, PRUNE_AT).unwrap_or_default());
    if xid.is_normal() && (!before.is_normal() || xid.precedes(before)) {
        put_u32(page, PRUNE_AT, xid.0);
    }
}

/// A sequence is written anew each time: its only row stands behind the numbers of its files.
pub(crate) fn sequence(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    const FILE_NUMBER_BYTES: usize = 12;
    let row = record
        .main
        .get(FILE_NUMBER_BYTES..)
        .ok_or(RedoFault::Short)?;
    init(target.page, SPECIAL_BYTES);
    let magic_at = target.page.len().saturating_sub(SPECIAL_BYTES);
    put_u32(target.page, magic_at, SEQUENCE_MAGIC);
    add_item(target.page, row, 1)
}
