//! Which bytes of a page its line pointers account for.

use std::ops::Range;

use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{LinePointer, LpFlags, Page};

/// More rows than any page holds, times the dead line pointers that may stand between them.
const POINTERS_MAX: usize = 2048;

/// The line pointers of a page whose header does not tell how many there are: as far as they make
/// sense.
pub(crate) fn derived_pointers(page: Page<'_>) -> Vec<(u16, LinePointer)> {
    let array = page.bytes().get(HEADER_BYTES..).unwrap_or_default();
    let (words, _) = array.as_chunks::<{ LinePointer::SIZE }>();
    let mut pointers = Vec::new();
    let mut rows_begin = page.len();
    let mut last_used = 0;
    for (word, number) in words.iter().zip(1u16..).take(POINTERS_MAX) {
        let pointer = LinePointer(u32::from_le_bytes(*word));
        let end = HEADER_BYTES + usize::from(number) * LinePointer::SIZE;
        if end > rows_begin || !makes_sense(pointer, page, end) {
            break;
        }
        if pointer.flags() == LpFlags::Normal {
            rows_begin = rows_begin.min(usize::from(pointer.lp_off()));
            last_used = usize::from(number);
        }
        pointers.push((number, pointer));
    }
    // Unused ones at the end are as well free space.
    pointers.truncate(last_used);
    pointers
}

fn makes_sense(pointer: LinePointer, page: Page<'_>, behind_array: usize) -> bool {
    let (offset, length) = (usize::from(pointer.lp_off()), usize::from(pointer.lp_len()));
    match pointer.flags() {
        LpFlags::Normal => {
            offset.is_multiple_of(8)
                && offset >= behind_array
                && length >= pgclinic_format::heap_tuple::HEADER_BYTES
                && offset + length <= page.len()
        }
        LpFlags::Unused | LpFlags::Dead => length == 0 && offset == 0,
        LpFlags::Redirect => length == 0 && offset > 0 && offset < POINTERS_MAX,
    }
}

/// Every byte between `pd_upper` and the special space belongs to an item, as on every page that a
/// server left.
#[inline]
pub(crate) fn is_covered(page: Page<'_>, item_bytes: usize) -> bool {
    let rows = usize::from(page.pd_special()).saturating_sub(usize::from(page.pd_upper()));
    item_bytes >= rows
}

/// The same, by what its line pointers say.
pub(crate) fn is_filled(page: Page<'_>) -> bool {
    let lengths = page
        .line_pointers()
        .map(|(_, pointer)| usize::from(pointer.lp_len()).next_multiple_of(8));
    is_covered(page, lengths.sum())
}

/// The ranges from `start` to the end of the page that no item covers.
pub(crate) fn uncovered(
    page: Page<'_>,
    pointers: &[(u16, LinePointer)],
    start: usize,
) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = pointers
        .iter()
        .filter(|(_, pointer)| matches!(pointer.flags(), LpFlags::Normal | LpFlags::Dead))
        .filter_map(|(_, pointer)| pointer.range())
        .filter(|range| !range.is_empty() && range.end <= page.len())
        .collect();
    items.sort_by_key(|range| range.start);
    let mut free = Vec::new();
    let mut at = start;
    for item in items {
        if item.start > at {
            free.push(at..item.start);
        }
        at = at.max(item.end.next_multiple_of(8));
    }
    if at < page.len() {
        free.push(at..page.len());
    }
    free
}
