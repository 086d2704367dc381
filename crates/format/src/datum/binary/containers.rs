//! Values that hold others: arrays, rows, ranges.

use super::super::array::{self, Array};
use super::super::element::{self, Placing};
use super::super::multirange::flags_of_ranges;
use super::super::range::{Bounds, bounds, flags_of_range};
use super::super::reader::{HEADER, Reader};
use super::super::record::Row;
use super::super::types::{Field, TypeInfo, TypeKind};
use super::super::undecodable::Undecodable;
use super::Sender;

/// An array that names its element type itself, and vectors.
pub(super) fn any_array(
    sender: &mut Sender<'_, '_>,
    _: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    elements(sender, Array::parse(value)?, &array::stored_type(value)?)
}

pub(super) fn array(
    sender: &mut Sender<'_, '_>,
    element: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let array = Array::parse(value)?;
    if array::is_of(&array, element) {
        return elements(sender, array, element);
    }
    elements(sender, array, &array::stored_type(value)?)
}

/// Count of dimensions, whether there are nulls, the type, length and lower bound of each
/// dimension, the elements.
fn elements(
    sender: &mut Sender<'_, '_>,
    mut array: Array<'_>,
    element: &TypeInfo,
) -> Result<(), Undecodable> {
    sender.count(array.dimensions.len())?;
    sender.u32(u32::from(array.has_bitmap()))?;
    sender.u32(sent_oid(element, array.element_oid))?;
    for (length, lower) in &array.dimensions {
        sender.count(*length)?;
        sender.i32(*lower)?;
    }
    for item in 0..array.items {
        if array.is_null(item) {
            sender.null()?;
            continue;
        }
        let data = &mut array.elements;
        let value = element::read(
            &mut sender.unpacking,
            data,
            element,
            Placing::Aligned,
            HEADER,
        )?;
        sender.part(element, &value)?;
    }
    Ok(())
}

/// What is given as its stored bytes is sent as `bytea`.
fn sent_oid(ty: &TypeInfo, oid: u32) -> u32 {
    const BYTEA: u32 = 17;
    match ty.kind {
        TypeKind::Bytes => BYTEA,
        _ => oid,
    }
}

/// Count of columns, then of each its type and value.
pub(super) fn record(
    sender: &mut Sender<'_, '_>,
    fields: &[Field],
    value: &[u8],
) -> Result<(), Undecodable> {
    let mut row = Row::of(fields, value)?;
    sender.count(fields.iter().filter(|field| !field.dropped).count())?;
    for (attribute, field) in fields.iter().enumerate() {
        let value = if row.is_null(attribute) {
            None
        } else {
            Some(element::read(
                &mut sender.unpacking,
                &mut row.data,
                &field.ty,
                Placing::Packed,
                0,
            )?)
        };
        if field.dropped {
            continue;
        }
        sender.u32(sent_oid(&field.ty, field.ty.oid))?;
        match value {
            None => sender.null()?,
            Some(value) => sender.part(&field.ty, &value)?,
        }
    }
    Ok(())
}

pub(super) fn range(
    sender: &mut Sender<'_, '_>,
    subtype: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let (mut reader, flags) = flags_of_range(value)?;
    one_range(sender, &mut reader, subtype, flags)?;
    reader.end()
}

/// Flags, then the bounds that there are.
fn one_range(
    sender: &mut Sender<'_, '_>,
    reader: &mut Reader<'_>,
    subtype: &TypeInfo,
    flags: u8,
) -> Result<(), Undecodable> {
    sender.raw(&[flags])?;
    let Bounds { lower, upper } = bounds(&mut sender.unpacking, reader, subtype, flags)?;
    for bound in [lower, upper].into_iter().flatten() {
        sender.part(subtype, &bound)?;
    }
    Ok(())
}

/// A count, then each range with its length.
pub(super) fn multirange(
    sender: &mut Sender<'_, '_>,
    subtype: &TypeInfo,
    value: &[u8],
) -> Result<(), Undecodable> {
    let (mut reader, flags) = flags_of_ranges(value)?;
    sender.count(flags.len())?;
    for flags in flags {
        reader.align(subtype.align, HEADER);
        sender.with_length(|sender| one_range(sender, &mut reader, subtype, *flags))?;
    }
    Ok(())
}
