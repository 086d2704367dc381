//! Row values: a heap tuple header, of which a varlena header takes the first four bytes, then
//! attributes as in a table.
//!
//! ```text
//! 0   typmod, type OID, ctid     14 bytes
//! 14  t_infomask2, t_infomask    2 × u16
//! 18  t_hoff                     counts from the varlena header
//! 19  null bitmap, attributes
//! ```
//!
//! Truth: `htup_details.h`, `rowtypes.c`.

use super::element::{self, Placing};
use super::printer::Printer;
use super::reader::{HEADER, Reader};
use super::types::{Field, TypeInfo};
use super::undecodable::Undecodable;

const HAS_NULL: u16 = 0x0001;
const NATTS_MASK: u16 = 0x07FF;

pub(crate) struct Row<'a> {
    pub(crate) attributes: usize,
    bitmap: Option<&'a [u8]>,
    pub(crate) data: Reader<'a>,
}

impl<'a> Row<'a> {
    /// A row of a type with these fields; it may have been stored when the type had fewer.
    pub(crate) fn of(fields: &[Field], value: &'a [u8]) -> Result<Self, Undecodable> {
        let row = Row::parse(value)?;
        if row.attributes > fields.len() {
            return Err(Undecodable::damaged(
                "a row value has more attributes than its type",
                14,
            ));
        }
        Ok(row)
    }

    pub(crate) fn parse(value: &'a [u8]) -> Result<Self, Undecodable> {
        let mut reader = Reader::starting(value, 14);
        let (infomask2, infomask, hoff) = (reader.u16()?, reader.u16()?, reader.u8()?);
        let attributes = usize::from(infomask2 & NATTS_MASK);
        let bitmap = match infomask & HAS_NULL {
            0 => None,
            _ => Some(reader.bytes(attributes.div_ceil(8))?),
        };
        let start = usize::from(hoff)
            .checked_sub(HEADER)
            .filter(|&start| start >= reader.at());
        let data = start.and_then(|start| value.get(start..));
        let data = data.ok_or(Undecodable::damaged("t_hoff of a row value is wrong", 18))?;
        Ok(Row {
            attributes,
            bitmap,
            data: Reader::new(data),
        })
    }

    pub(crate) fn is_null(&self, attribute: usize) -> bool {
        let byte = self.bitmap.and_then(|bitmap| bitmap.get(attribute / 8));
        attribute >= self.attributes || byte.is_some_and(|byte| byte >> (attribute % 8) & 1 == 0)
    }
}

pub(super) fn print(
    printer: &mut Printer,
    fields: &[Field],
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut row = Row::of(fields, value)?;
    printer.byte(b'(')?;
    let mut is_first = true;
    for (attribute, field) in fields.iter().enumerate() {
        if !field.dropped && !std::mem::take(&mut is_first) {
            printer.byte(b',')?;
        }
        if row.is_null(attribute) {
            continue;
        }
        let value = element::read(
            printer.unpacking(),
            &mut row.data,
            &field.ty,
            Placing::Packed,
            0,
        )?;
        if !field.dropped {
            print_field(printer, &field.ty, &value)?;
        }
    }
    printer.byte(b')')
}

fn print_field(printer: &mut Printer, ty: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
    let mark = printer.mark();
    printer.value(ty, value)?;
    let text = printer.since(mark);
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | b' ' | 9..=13);
    if text.is_empty() || text.iter().any(is_special) {
        printer.quote_since(mark, |byte| matches!(byte, b'"' | b'\\').then_some(byte))?;
    }
    Ok(())
}
