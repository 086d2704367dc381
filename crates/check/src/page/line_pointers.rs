//! Where line pointers stand on a page.

use std::ops::Range;

use pgclinic_format::LinePointer;
use pgclinic_format::page::HEADER_BYTES;

/// Offsets of line pointer `number`, from 1, on its page.
pub(crate) fn pointer_bytes(number: u16) -> Range<usize> {
    let start = HEADER_BYTES + usize::from(number.saturating_sub(1)) * LinePointer::SIZE;
    start..start + LinePointer::SIZE
}
