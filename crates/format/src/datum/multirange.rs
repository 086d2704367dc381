//! Multiranges: type OID, count, an offset or length for each range but the first, flags for
//! each range, then the bounds, each range's aligned for the subtype.
//!
//! Truth: `multirangetypes.h`, `multirangetypes.c`.

use super::printer::Printer;
use super::range;
use super::reader::{HEADER, Reader};
use super::types::TypeInfo;
use super::undecodable::Undecodable;

pub(super) fn print(
    printer: &mut Printer,
    subtype: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let (mut reader, flags) = flags_of_ranges(value)?;
    printer.byte(b'{')?;
    for (place, flags) in flags.iter().enumerate() {
        if place > 0 {
            printer.byte(b',')?;
        }
        reader.align(subtype.align, HEADER);
        range::print_bounds(printer, &mut reader, subtype, *flags)?;
    }
    printer.byte(b'}')
}

/// The flags of each range, and a reader that stands before the bounds of the first.
pub(super) fn flags_of_ranges(value: &[u8]) -> Result<(Reader<'_>, &[u8]), Undecodable> {
    let mut reader = Reader::new(value);
    reader.u32()?;
    let count = usize::try_from(reader.u32()?).unwrap_or(usize::MAX);
    reader.bytes(count.saturating_sub(1).saturating_mul(4))?;
    let flags = reader.bytes(count)?;
    Ok((reader, flags))
}
