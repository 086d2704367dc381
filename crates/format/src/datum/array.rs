//! Arrays: dimensions, lower bounds, a null bitmap if there are nulls, then the elements.
//!
//! ```text
//! 0   ndim        i32, at most 6
//! 4   dataoffset  i32, 0 without nulls; counts from the varlena header, 4 bytes before this
//! 8   elemtype    u32
//! 12  dimensions  ndim × i32, then lower bounds, ndim × i32
//!     bitmap      one bit an element, 1 = not null
//!     elements    from a multiple of 8 (counted from the header), each aligned for its type
//! ```
//!
//! Truth: `array.h`, `arrayfuncs.c`, and for the vectors `int.c`, `oid.c`.

use std::borrow::Cow;

use super::builtin::builtin;
use super::element::{self, Placing};
use super::printer::Printer;
use super::reader::{HEADER, Reader};
use super::types::{DESCRIBED_OID, TypeInfo, TypeKind};
use super::undecodable::Undecodable;
use crate::types::FIRST_NORMAL_OID;

/// `MAXDIM`.
const DIMENSIONS_MAX: usize = 6;
const BOX_OID: u32 = 603;
const ACLITEM_OID: u32 = 1033;
const ACLITEM_ARRAY_OID: u32 = 1034;
/// The first major with aclitems of 16 bytes.
const WIDE_ACLITEM_MAJOR: u16 = 16;

pub(crate) struct Array<'a> {
    pub(crate) element_oid: u32,
    /// Length and lower bound of each dimension.
    pub(crate) dimensions: Vec<(usize, i32)>,
    pub(crate) items: usize,
    bitmap: Option<&'a [u8]>,
    pub(crate) elements: Reader<'a>,
}

impl<'a> Array<'a> {
    pub(crate) fn parse(value: &'a [u8]) -> Result<Self, Undecodable> {
        let mut reader = Reader::new(value);
        let count = reader.count("the count of dimensions is negative")?;
        if count > DIMENSIONS_MAX {
            return Err(Undecodable::damaged(
                "an array has more than 6 dimensions",
                0,
            ));
        }
        let data_offset = reader.count("the offset of an array's elements is negative")?;
        let element_oid = reader.u32()?;
        let mut lengths = Vec::with_capacity(count);
        for _ in 0..count {
            lengths.push(reader.count("a dimension is negative")?);
        }
        let mut dimensions = Vec::with_capacity(count);
        for length in lengths {
            dimensions.push((length, reader.i32()?));
        }
        let product = dimensions
            .iter()
            .try_fold(1_usize, |product, (length, _)| product.checked_mul(*length));
        let items = product.filter(|_| count > 0);
        // Each item takes a byte or a bit, so that a count beyond all bits is a lie.
        let items = match items {
            Some(items) if items <= value.len().saturating_mul(8) => items,
            None if count == 0 => 0,
            _ => {
                return Err(Undecodable::damaged(
                    "an array has more items than bytes",
                    12,
                ));
            }
        };
        let (bitmap, start) = if data_offset == 0 {
            (None, (HEADER + 12 + 8 * count).next_multiple_of(8) - HEADER)
        } else {
            let bitmap = reader.bytes(items.div_ceil(8))?;
            let start = data_offset
                .checked_sub(HEADER)
                .filter(|&start| start >= reader.at());
            let start = start.ok_or(Undecodable::damaged(
                "an array's elements overlap its header",
                4,
            ))?;
            (Some(bitmap), start)
        };
        Ok(Array {
            element_oid,
            dimensions,
            items,
            bitmap,
            elements: Reader::starting(value, start),
        })
    }

    /// It has room for nulls, whether there are any or not.
    pub(super) fn has_bitmap(&self) -> bool {
        self.bitmap.is_some()
    }

    pub(crate) fn is_null(&self, item: usize) -> bool {
        let byte = self.bitmap.and_then(|bitmap| bitmap.get(item / 8));
        byte.is_some_and(|byte| byte >> (item % 8) & 1 == 0)
    }

    /// How many braces stand around `items` items: one for each dimension they fill.
    fn braces(&self, items: usize) -> usize {
        let mut size = 1;
        let fill = self.dimensions.iter().rev().take_while(|(length, _)| {
            size *= *length;
            items.is_multiple_of(size.max(1))
        });
        fill.count()
    }
}

/// `anyarray`, as in `pg_statistic`: the value itself names its element type.
pub(super) fn print_any(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let array = Array::parse(value)?;
    print_elements(printer, array, &stored_type(value)?)
}

pub(super) fn print(
    printer: &mut Printer,
    element: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let array = Array::parse(value)?;
    if is_of(&array, element) {
        return print_elements(printer, array, element);
    }
    let stored = stored_type(value)?;
    print_elements(printer, array, &stored)
}

/// The array names this type. Of one that a person described the number is not known: it is any
/// that is not built in.
pub(super) fn is_of(array: &Array<'_>, element: &TypeInfo) -> bool {
    match element.oid {
        0 | DESCRIBED_OID => array.element_oid >= FIRST_NORMAL_OID,
        known => array.element_oid == known,
    }
}

/// The type that the array itself names: `anyarray` holds elements of any type, also of a user's,
/// and a column whose type was changed to a like one keeps its arrays as they are.
pub(super) fn stored_type(value: &[u8]) -> Result<TypeInfo, Undecodable> {
    let oid = Reader::starting(value, 8).u32()?;
    builtin(oid).ok_or(Undecodable::unsupported(
        "an array's elements are of a type that is not built in",
    ))
}

fn print_elements(
    printer: &mut Printer,
    mut array: Array<'_>,
    element: &TypeInfo,
) -> Result<(), Undecodable> {
    if array.items == 0 {
        return printer.text("{}");
    }
    if array.dimensions.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &array.dimensions {
            let upper = i64::try_from(*length)
                .unwrap_or(i64::MAX)
                .saturating_add(i64::from(*lower))
                - 1;
            printer.put(format_args!("[{lower}:{upper}]"))?;
        }
        printer.byte(b'=')?;
    }
    let element = stored_width(&array, element, printer.major());
    let delimiter = delimiter(&element);
    for item in 0..array.items {
        if item > 0 {
            printer.byte(delimiter)?;
        }
        for _ in 0..array.braces(item) {
            printer.byte(b'{')?;
        }
        if array.is_null(item) {
            printer.text("NULL")?;
        } else {
            let value = element::read(
                printer.unpacking(),
                &mut array.elements,
                &element,
                Placing::Aligned,
                HEADER,
            )?;
            print_element(printer, &element, &value, delimiter)?;
        }
        for _ in 0..array.braces(item + 1) {
            printer.byte(b'}')?;
        }
    }
    Ok(())
}

fn print_element(
    printer: &mut Printer,
    element: &TypeInfo,
    value: &[u8],
    delimiter: u8,
) -> Result<(), Undecodable> {
    let mark = printer.mark();
    printer.value(element, value)?;
    let text = printer.since(mark);
    let is_special = |byte: &u8| {
        matches!(byte, b'"' | b'\\' | b'{' | b'}' | b' ' | 9..=13) || *byte == delimiter
    };
    if text.is_empty() || text.eq_ignore_ascii_case(b"NULL") || text.iter().any(is_special) {
        printer.quote_since(mark, |byte| matches!(byte, b'"' | b'\\').then_some(b'\\'))?;
    }
    Ok(())
}

/// `typdelim`: a comma for all types but boxes.
fn delimiter(mut element: &TypeInfo) -> u8 {
    // No chain of domains is longer; a longer one ends in an error when it is printed.
    for _ in 0..256 {
        match &element.kind {
            TypeKind::Domain(base) => element = base,
            _ => break,
        }
    }
    if element.oid == BOX_OID { b';' } else { b',' }
}

/// An `aclitem` had 12 bytes before 16 and has 16 since: the array's size tells. Arrays of them,
/// as in `pg_statistic`, are aligned as they are.
fn stored_width<'t>(array: &Array<'_>, element: &'t TypeInfo, major: u16) -> Cow<'t, TypeInfo> {
    if element.oid == ACLITEM_ARRAY_OID && major < WIDE_ACLITEM_MAJOR {
        let align = 4;
        return Cow::Owned(TypeInfo {
            align,
            ..element.clone()
        });
    }
    if element.oid != ACLITEM_OID || array.bitmap.is_some() {
        return Cow::Borrowed(element);
    }
    let is_old = array.elements.peek().len() == array.items.saturating_mul(12);
    let (len, align) = if is_old { (12, 4) } else { (16, 8) };
    Cow::Owned(TypeInfo {
        len,
        align,
        ..element.clone()
    })
}

/// One dimension from 0, no nulls, printed with spaces only.
pub(super) fn print_int2vector(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    print_vector(printer, value, 21, |reader| reader.i16().map(i64::from))
}

pub(super) fn print_oidvector(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    print_vector(printer, value, 26, |reader| reader.u32().map(i64::from))
}

fn print_vector(
    printer: &mut Printer,
    value: &[u8],
    element_oid: u32,
    read: fn(&mut Reader<'_>) -> Result<i64, Undecodable>,
) -> Result<(), Undecodable> {
    let mut array = Array::parse(value)?;
    if array.element_oid != element_oid || array.dimensions.len() > 1 || array.bitmap.is_some() {
        return Err(Undecodable::damaged("the array is no vector", 0));
    }
    for item in 0..array.items {
        let number = read(&mut array.elements)?;
        printer.put(format_args!("{}{number}", if item > 0 { " " } else { "" }))?;
    }
    Ok(())
}
