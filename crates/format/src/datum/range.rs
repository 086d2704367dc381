//! Ranges: the range's type OID, the bounds that are finite, and flags in the last byte.
//!
//! Truth: `rangetypes.h`, `rangetypes.c`.

use std::borrow::Cow;

use super::element::{self, Placing, Unpacking};
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
    let (mut reader, flags) = flags_of_range(value)?;
    print_bounds(printer, &mut reader, subtype, flags)?;
    reader.end()
}

/// The flags of a range, and a reader that stands before its bounds.
pub(super) fn flags_of_range(value: &[u8]) -> Result<(Reader<'_>, u8), Undecodable> {
    let (&flags, bounds) = value
        .split_last()
        .ok_or(Undecodable::damaged("the value ends too early", 0))?;
    let mut reader = Reader::new(bounds);
    reader.u32()?;
    Ok((reader, flags))
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
    let Bounds { lower, upper } = bounds(printer.unpacking(), reader, subtype, flags)?;
    printer.byte(if flags & LOWER_INCLUSIVE != 0 {
        b'['
    } else {
        b'('
    })?;
    if let Some(lower) = lower {
        bound(printer, subtype, &lower)?;
    }
    printer.byte(b',')?;
    if let Some(upper) = upper {
        bound(printer, subtype, &upper)?;
    }
    printer.byte(if flags & UPPER_INCLUSIVE != 0 {
        b']'
    } else {
        b')'
    })
}

/// The bounds that a range has.
pub(super) struct Bounds<'a> {
    pub(super) lower: Option<Cow<'a, [u8]>>,
    pub(super) upper: Option<Cow<'a, [u8]>>,
}

/// Reads the bounds that begin here.
pub(super) fn bounds<'a>(
    unpacking: &mut Unpacking,
    reader: &mut Reader<'a>,
    subtype: &TypeInfo,
    flags: u8,
) -> Result<Bounds<'a>, Undecodable> {
    let mut read = |infinite: u8, placing: Placing| {
        if flags & (EMPTY | infinite) != 0 {
            return Ok(None);
        }
        let is_first = reader.at() <= HEADER;
        let placing = if is_first { Placing::Here } else { placing };
        element::read(unpacking, reader, subtype, placing, HEADER).map(Some)
    };
    Ok(Bounds {
        lower: read(LOWER_INFINITE, Placing::Here)?,
        upper: read(UPPER_INFINITE, Placing::Packed)?,
    })
}

fn bound(printer: &mut Printer, subtype: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
    let mark = printer.mark();
    printer.value(subtype, value)?;
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
