//! BRIN pages: a map from ranges of blocks to their summaries.
//!
//! ```text
//! block 0            meta page: | magic 4 | version 4 | pages a range 4 | last page of the map 4 |
//! blocks 1 … last    the map: row numbers of summaries, 6 bytes a range
//! behind             summaries with line pointers
//! special            | 4 | flags 2 | page type 2 |
//! ```
//!
//! Truth: `src/include/access/brin_page.h`, `src/backend/access/brin/brin_revmap.c`.

mod tuple;

pub use tuple::{BrinTuple, NullBits, SummaryFault, Values};

use crate::bytes::{tid_at, u16_at, u32_at};
use crate::page::Page;
use crate::types::{BlockNo, Tid};

/// `BRIN_PAGETYPE_META`.
pub const PAGE_META: u16 = 0xF091;
/// `BRIN_PAGETYPE_REVMAP`.
pub const PAGE_REVMAP: u16 = 0xF092;
/// `BRIN_PAGETYPE_REGULAR`.
pub const PAGE_REGULAR: u16 = 0xF093;
/// `BRIN_MAX_PAGES_PER_RANGE`.
pub const PAGES_PER_RANGE_MAX: u32 = 131_072;
/// Where the contents of a page begin.
pub const CONTENTS_AT: usize = 24;

const SPECIAL_BYTES: usize = 8;
/// Bytes of a place in the map.
const TID_BYTES: usize = 6;

/// The page type in the special space; nothing when that has another size.
pub fn page_type(page: Page<'_>) -> Option<u16> {
    let special = page.special()?;
    (special.len() == SPECIAL_BYTES).then_some(())?;
    u16_at(special, 6)
}

/// What the meta page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// `brinMagic`.
    pub magic: u32,
    /// `brinVersion`.
    pub version: u32,
    /// `pagesPerRange`.
    pub pages_per_range: u32,
    /// `lastRevmapPage`; 0 before the first page of the map.
    pub last_revmap_page: BlockNo,
}

impl Meta {
    /// Offset of `pagesPerRange` in the page.
    pub const PAGES_PER_RANGE_AT: usize = CONTENTS_AT + 8;
    /// Offset of `lastRevmapPage` in the page.
    pub const LAST_REVMAP_PAGE_AT: usize = CONTENTS_AT + 12;

    /// Block 0, without asking for its type.
    pub fn of(page: Page<'_>) -> Option<Meta> {
        let bytes = page.bytes();
        Some(Meta {
            magic: u32_at(bytes, CONTENTS_AT)?,
            version: u32_at(bytes, CONTENTS_AT + 4)?,
            pages_per_range: u32_at(bytes, Self::PAGES_PER_RANGE_AT)?,
            last_revmap_page: u32_at(bytes, Self::LAST_REVMAP_PAGE_AT)?,
        })
    }
}

/// Ranges that one page of the map holds (`REVMAP_PAGE_MAXITEMS`).
pub fn ranges_per_map_page(page_bytes: usize) -> u32 {
    let bytes = page_bytes.saturating_sub(CONTENTS_AT + SPECIAL_BYTES);
    u32::try_from(bytes / TID_BYTES).unwrap_or(u32::MAX)
}

/// Offset in its page of place `index` of the map, from 0.
pub fn map_entry_at(index: u32) -> usize {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    CONTENTS_AT.saturating_add(index.saturating_mul(TID_BYTES))
}

/// Where the map says that the summary of a range stands; nothing for a range without one.
pub fn map_entry(page: Page<'_>, index: u32) -> Option<Tid> {
    (index < ranges_per_map_page(page.len())).then_some(())?;
    let tid = tid_at(page.bytes(), map_entry_at(index))?;
    (tid.offset != 0).then_some(tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_page_holds_1360_ranges() {
        assert_eq!(ranges_per_map_page(8192), 1360);
        let mut bytes = vec![0; 8192];
        bytes[24 + 1359 * 6..24 + 1360 * 6].copy_from_slice(&[0, 0, 9, 0, 4, 0]);
        let page = Page::parse(&bytes).expect("a block size");
        assert_eq!(
            map_entry(page, 1359),
            Some(Tid {
                block: 9,
                offset: 4
            })
        );
        assert_eq!(map_entry(page, 0), None);
        assert_eq!(map_entry(page, 1360), None);
    }
}
