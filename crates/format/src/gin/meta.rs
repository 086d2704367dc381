//! The meta page (`GinMetaPageData`): where entries wait, and what VACUUM counted last.
//!
//! ```text
//! 24     28     32          36       40         48     52      56     64        72
//! | head | tail | free bytes| pages  | rows 8   | pages| keys p| data p| keys 8 | version
//! ```
//!
//! Truth: `src/include/access/ginblock.h`.

use crate::bytes::{u32_at, u64_at};
use crate::page::Page;
use crate::types::BlockNo;

const CONTENTS_AT: usize = 24;

/// What the meta page says; nothing is promised about any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// First page of waiting entries, or `INVALID_BLOCK`.
    pub head: BlockNo,
    /// Last page of waiting entries, or `INVALID_BLOCK`.
    pub tail: BlockNo,
    /// `tailFreeSize`: free bytes of the last page.
    pub tail_free_bytes: u32,
    /// `nPendingPages`.
    pub pending_pages: u32,
    /// `nPendingHeapTuples`: rows that wait.
    pub pending_rows: i64,
    /// `nTotalPages`, as of the last VACUUM.
    pub total_pages: u32,
    /// `nEntryPages`, as of the last VACUUM.
    pub entry_pages: u32,
    /// `nDataPages`, as of the last VACUUM.
    pub data_pages: u32,
    /// `nEntries`, as of the last VACUUM.
    pub entries: i64,
    /// `ginVersion`: 0 of 9.0 and before, 1 of 9.1 to 9.3, 2 since.
    pub version: u32,
}

impl Meta {
    /// Offset of `head` in the page.
    pub const HEAD_AT: usize = CONTENTS_AT;
    /// Offset of `tail` in the page.
    pub const TAIL_AT: usize = CONTENTS_AT + 4;
    /// Offset of `tailFreeSize` in the page.
    pub const TAIL_FREE_AT: usize = CONTENTS_AT + 8;
    /// Offset of `nPendingPages` in the page.
    pub const PENDING_PAGES_AT: usize = CONTENTS_AT + 12;
    /// Offset of `nPendingHeapTuples` in the page.
    pub const PENDING_ROWS_AT: usize = CONTENTS_AT + 16;

    /// Block 0, without asking whether it is marked as a meta page.
    pub fn of(page: Page<'_>) -> Option<Meta> {
        let bytes = page.bytes().get(CONTENTS_AT..)?;
        Some(Meta {
            head: u32_at(bytes, 0)?,
            tail: u32_at(bytes, 4)?,
            tail_free_bytes: u32_at(bytes, 8)?,
            pending_pages: u32_at(bytes, 12)?,
            pending_rows: u64_at(bytes, 16)?.cast_signed(),
            total_pages: u32_at(bytes, 24)?,
            entry_pages: u32_at(bytes, 28)?,
            data_pages: u32_at(bytes, 32)?,
            entries: u64_at(bytes, 40)?.cast_signed(),
            version: u32_at(bytes, 48)?,
        })
    }
}
