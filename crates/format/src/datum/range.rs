//! Ranges: the range's type OID, the bounds that are finite, and flags in the last byte.
//!
//! Truth: `rangetypes.h`, `rangetypes.c`.

use super::element::{self, Placing};
use super::printer::Printer;
use super::reader::{HEADER, Reader};
use super::types::TypeInfo;
use super::undecodable::Undecodable;

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

pub(super) fn print(
    printer: &mut Printer,
    subtype: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let (&flags, bounds) = value
        .split_last()
        .ok_or(Undecodable::damaged("the value ends too early", 0))?;
    let mut reader = Reader::new(bounds);
    reader.u32()?;
    print_bounds(printer, &mut reader, subtype, flags)?;
    reader.end()
}

/// Prints one range whose bounds begin here.
pub(super) fn print_bounds(
    printer: &mut Printer,
    reader: &mut Reader<'_>,
    subtype: &TypeInfo,
    flags: u8,
) -> Result<(), Undecodable> {
    if flags & EMPTY != 0 {
        return printer.text("empty");
    }
    printer.byte(if flags & LOWER_INCLUSIVE != 0 {
        b'['
    } else {
        b'('
    })?;
    if flags & LOWER_INFINITE == 0 {
        bound(printer, reader, subtype, Placing::Here)?;
    }
    printer.byte(b',')?;
    if flags & UPPER_INFINITE == 0 {
        bound(printer, reader, subtype, Placing::Packed)?;
    }
    printer.byte(if flags & UPPER_INCLUSIVE != 0 {
        b']'
    } else {
        b')'
    })
}

fn bound(
    printer: &mut Printer,
    reader: &mut Reader<'_>,
    subtype: &TypeInfo,
    placing: Placing,
) -> Result<(), Undecodable> {
    let is_first = reader.at() <= HEADER;
    let placing = if is_first { Placing::Here } else { placing };
    let value = element::read(printer.unpacking(), reader, subtype, placing, HEADER)?;
    let mark = printer.mark();
    printer.value(subtype, &value)?;
    let text = printer.since(mark);
    let is_special = |byte: &u8| {
        matches!(
            byte,
            b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',' | b' ' | 9..=13
        )
    };
    if text.is_empty() || text.iter().any(is_special) {
        printer.quote_since(mark, |byte| matches!(byte, b'"' | b'\\').then_some(byte))?;
    }
    Ok(())
}
