//! A sequence: one page, one tuple of three columns, a magic word in the special space.
//!
//! Truth: `src/backend/commands/sequence.c`, `src/include/commands/sequence.h`.

use crate::attribute::{Attribute, Attributes, ColumnLayout};
use crate::bytes::u32_at;
use crate::heap_tuple::HeapTuple;
use crate::line_pointer::LpFlags;
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

/// `last_value` and `is_called`, where the page is that of a sequence.
pub fn last_value(page: Page<'_>) -> Option<(i64, bool)> {
    (magic(page) == Some(SEQUENCE_MAGIC)).then_some(())?;
    let mut pointers = page.line_pointers();
    let (_, pointer) = pointers.find(|(_, pointer)| pointer.flags() == LpFlags::Normal)?;
    let tuple = HeapTuple::parse(page.item(pointer)?)?;
    let mut values = Attributes::new(tuple, &COLUMNS).filter_map(|attribute| match attribute {
        Ok(Attribute::Value(range)) => tuple.bytes().get(range),
        _ => None,
    });
    let last_value = i64::from_le_bytes(*values.next()?.first_chunk()?);
    let is_called = *values.nth(1)?.first()?;
    (is_called <= 1).then_some((last_value, is_called == 1))
}
