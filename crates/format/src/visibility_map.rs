//! The visibility map: two bits a heap page behind a standard page header.
//!
//! Truth: `src/backend/access/heap/visibilitymap.c`.

use crate::page::{HEADER_BYTES, Page};
use crate::types::BlockNo;

/// All rows of the heap page are visible to all.
pub const ALL_VISIBLE: u8 = 1;
/// All rows of the heap page are frozen.
pub const ALL_FROZEN: u8 = 2;

/// Heap pages that one page of the map covers.
pub fn heap_blocks_per_page(page_len: usize) -> u64 {
    (page_len.saturating_sub(HEADER_BYTES) as u64) * 4
}

/// The two bits of heap page `index` among those that this page covers.
pub fn bits(page: Page<'_>, index: u64) -> Option<u8> {
    let byte = HEADER_BYTES.checked_add(usize::try_from(index / 4).ok()?)?;
    let shift = (index % 4) * 2;
    page.bytes().get(byte).map(|byte| (byte >> shift) & 3)
}

/// The highest heap block that a map page says something about, counted from the block its
/// first bits are for.
pub fn last_marked(page: Page<'_>, first_block: u64) -> Option<BlockNo> {
    let map = page.bytes().get(HEADER_BYTES..)?;
    let at = map.iter().rposition(|byte| *byte != 0)?;
    let within = u64::from(7 - map.get(at)?.leading_zeros()) / 2;
    BlockNo::try_from(first_block + at as u64 * 4 + within).ok()
}
