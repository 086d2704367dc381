//! A sequence: one page, one tuple of three columns, a magic word in the special space.
//!
//! Truth: `src/backend/commands/sequence.c`, `src/include/commands/sequence.h`.

use crate::attribute::ColumnLayout;
use crate::bytes::u32_at;
use crate::page::Page;

/// `SEQ_MAGIC`.
pub const SEQUENCE_MAGIC: u32 = 0x1717;
/// Bytes of the special space.
pub const SPECIAL_BYTES: usize = 8;
/// `last_value`, `log_cnt`, `is_called`.
pub const COLUMNS: [ColumnLayout; 3] = [
    ColumnLayout {
        attlen: 8,
        attalign: 8,
    },
    ColumnLayout {
        attlen: 8,
        attalign: 8,
    },
    ColumnLayout {
        attlen: 1,
        attalign: 1,
    },
];

/// The magic word of the special space, if there is one.
pub fn magic(page: Page<'_>) -> Option<u32> {
    u32_at(page.special()?, 0)
}
