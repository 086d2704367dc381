//! The TOAST pointer of a column is given up: the row is formed again without it, at its own place
//! and no longer than before, so that nothing else on the page moves.
//!
//! ```text
//! header, nulls ─► … | pointer (18 bytes) | …      becomes      header, nulls ─► … | null, or '' | …
//! ```
//!
//! Null is the honest value, and takes no room. A column that is `NOT NULL` gets the empty value,
//! where its type has one that is the empty string of bytes; any other made-up value would be a
//! lie. Truth: `heap_form_tuple` in `src/backend/access/common/heaptuple.c`.

use pgclinic_cluster::Column;
use pgclinic_format::build::put_u16;
use pgclinic_format::datum::{TypeInfo, TypeKind};
use pgclinic_format::heap_tuple::{
    HEADER_BYTES, HEAP_HASEXTERNAL, HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_ONLY_TUPLE,
};
use pgclinic_format::{
    Attribute, Attributes, ColumnLayout, HeapTuple, LinePointer, LpFlags, Varlena, varlena,
};
use pgclinic_model::plan::Safety;

use super::dangling::Gone;
use super::draft::Draft;
use super::heap_place::HeapPlace;
use super::kill::put_pointer;
use super::{Cure, CureUnit, CuredFiles};
use crate::byte_edits::put_bytes;
use crate::error::Result;

pub(super) const CUT_TOAST_VALUE: Cure = Cure {
    name: "cut-toast-value",
    summary: "replace a TOASTed value that cannot be read by null, or ''",
    unit: CureUnit::Column,
    files: CuredFiles::Tables,
    draft: cut_toast_value,
};

/// A header of one byte that says that no payload follows.
const EMPTY_VARLENA: u8 = 0x03;
/// `bytea`, `text`, `bpchar`, `varchar`: the empty value is one of them.
const TYPES_WITH_EMPTY_VALUE: [u32; 4] = [17, 25, 1042, 1043];

/// What stands in the column afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replacement {
    Null,
    Empty,
}

/// A value of the new row.
enum Piece<'a> {
    Null,
    Bytes(&'a [u8], ColumnLayout),
}

fn cut_toast_value(place: &HeapPlace<'_>) -> Result<Draft> {
    let (item, tuple) = place.row()?;
    let (column, index) = column_of(place)?;
    let (pieces, pointer_words) = pieces_of(place, tuple, column, index)?;
    let replacement = replacement_for(place, column)?;
    let row = formed(tuple, &pieces, index, replacement);
    let pointer = place.page()?.line_pointer(item);
    let (at, len) = pointer.map_or((0, 0), |own| (own.lp_off(), own.lp_len()));
    let new_len = u16::try_from(row.len()).unwrap_or(u16::MAX);
    if new_len > len {
        return place.refuse(format!(
            "the row would need {new_len} bytes where it has {len}: its bitmap of nulls does not fit without moving other rows"
        ));
    }
    let mut after = place.bytes.to_vec();
    put_bytes(&mut after, usize::from(at), &row);
    put_pointer(
        &mut after,
        item,
        LinePointer::new(at, LpFlags::Normal, new_len),
    );
    let mut draft = Draft::new(after, summary(column, replacement), Safety::Lossy)
        .because(pointer_words)
        .warn("the chunks of the value that are left in the TOAST table stay there, and nothing leads to them")
        .row(item, true);
    draft.gone = Some(Gone::Value {
        column: column.attnum,
        items: entry_items(place, item, tuple)?,
    });
    Ok(draft)
}

fn summary(column: &Column, replacement: Replacement) -> String {
    let words = match replacement {
        Replacement::Null => "null",
        Replacement::Empty => "the empty value, since it is NOT NULL",
    };
    format!(
        "the TOASTed value of column {} becomes {words}; the rest of the row stays",
        column.name
    )
}

/// Line pointers to which index entries of the row lead: its own, or the root of its chain.
fn entry_items(place: &HeapPlace<'_>, item: u16, tuple: HeapTuple<'_>) -> Result<Vec<u16>> {
    if tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0 {
        return Ok(vec![item]);
    }
    let mut root = item;
    // A chain has no more versions than the page has line pointers.
    for _ in 0..place.page()?.line_pointer_count() {
        let chain = place.chain(root)?;
        match chain.redirect.or(chain.older) {
            Some(before) => root = before,
            None => break,
        }
    }
    Ok(vec![root])
}

/// The column, and its index among those of the rows.
fn column_of<'a>(place: &HeapPlace<'a>) -> Result<(&'a Column, usize)> {
    let relation = place.relation;
    let Some(columns) = relation.and_then(|relation| relation.columns.as_deref()) else {
        return place.refuse(
            "the columns of the table are unknown: pg_attribute does not give all of them",
        );
    };
    let wanted = place.column.unwrap_or_default();
    let mut own = columns.iter().zip(0..);
    match own.find(|(column, _)| column.name == wanted && !column.dropped) {
        Some((column, index)) => Ok((column, index)),
        None => place.refuse(format!("the table has no column {wanted:?}")),
    }
}

/// The values as they stand, with their headers, and what the pointer says; only a row that can be
/// walked to its end is formed again.
fn pieces_of<'a>(
    place: &HeapPlace<'a>,
    tuple: HeapTuple<'a>,
    column: &Column,
    index: usize,
) -> Result<(Vec<Piece<'a>>, String)> {
    let layouts = place
        .relation
        .and_then(|relation| relation.layouts.as_deref());
    let layouts = layouts.unwrap_or_default();
    let mut pieces = Vec::new();
    let mut words = None;
    for ((attribute, layout), number) in Attributes::new(tuple, layouts).zip(layouts).zip(0..) {
        let range = match attribute {
            Ok(Attribute::Value(range)) => range,
            Ok(Attribute::Null) => {
                pieces.push(Piece::Null);
                continue;
            }
            Ok(Attribute::Missing) => break,
            Err(_) => return place.refuse("the row cannot be walked to its end, so that it cannot be formed again: --kill gives it up"),
        };
        let bytes = tuple.bytes().get(range).unwrap_or_default();
        if number == index && layout.attlen == -1 {
            words = match varlena::parse(bytes) {
                Ok((Varlena::External(pointer), _)) => Some(format!(
                    "the column holds a TOAST pointer to value {} of {} bytes in relation {}",
                    pointer.va_valueid, pointer.va_extsize, pointer.va_toastrelid
                )),
                _ => None,
            };
        }
        pieces.push(Piece::Bytes(bytes, *layout));
    }
    match words {
        Some(words) => Ok((pieces, words)),
        None => place.refuse(format!(
            "column {} of the row holds no TOAST pointer",
            column.name
        )),
    }
}

fn replacement_for(place: &HeapPlace<'_>, column: &Column) -> Result<Replacement> {
    if !column.not_null {
        return Ok(Replacement::Null);
    }
    let ty = place.database.catalog.type_info(column.type_oid);
    if TYPES_WITH_EMPTY_VALUE.contains(&base_of(&ty)) {
        return Ok(Replacement::Empty);
    }
    place.refuse(format!(
        "column {} is NOT NULL, and its type {} has no empty value that could be written: --kill gives up the row",
        column.name, ty.name
    ))
}

/// The type below domains.
fn base_of(ty: &TypeInfo) -> u32 {
    let mut own = ty;
    while let TypeKind::Domain(inner) = &own.kind {
        own = inner;
    }
    own.oid
}

/// The row as the server would form it.
fn formed(
    tuple: HeapTuple<'_>,
    pieces: &[Piece<'_>],
    cut: usize,
    replacement: Replacement,
) -> Vec<u8> {
    let is_null = |(piece, index): (&Piece<'_>, usize)| {
        matches!(piece, Piece::Null) || index == cut && replacement == Replacement::Null
    };
    let nulls: Vec<bool> = pieces.iter().zip(0..).map(is_null).collect();
    let has_null = nulls.contains(&true);
    let bitmap = if has_null {
        pieces.len().div_ceil(8)
    } else {
        0
    };
    let hoff = (HEADER_BYTES + bitmap).next_multiple_of(8);
    let mut row = tuple
        .bytes()
        .get(..HEADER_BYTES)
        .unwrap_or_default()
        .to_vec();
    row.resize(hoff, 0);
    let values = nulls
        .iter()
        .zip(0usize..)
        .filter(|(is_null, _)| has_null && !**is_null);
    for (_, index) in values {
        if let Some(byte) = row.get_mut(HEADER_BYTES + index / 8) {
            *byte |= 1 << (index % 8);
        }
    }
    let mut mask = tuple.t_infomask() & !(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL);
    if has_null {
        mask |= HEAP_HASNULL;
    }
    for ((piece, is_null), index) in pieces.iter().zip(&nulls).zip(0..) {
        let Piece::Bytes(bytes, layout) = piece else {
            continue;
        };
        if *is_null {
            continue;
        }
        let bytes = if index == cut {
            &[EMPTY_VARLENA][..]
        } else {
            *bytes
        };
        mask |= flags_of(bytes, *layout);
        append(&mut row, bytes, *layout);
    }
    put_u16(&mut row, 20, mask);
    if let Some(byte) = row.get_mut(22) {
        *byte = u8::try_from(hoff).unwrap_or(u8::MAX);
    }
    row
}

/// `HEAP_HASVARWIDTH` and `HEAP_HASEXTERNAL`, as far as this value asks for them.
fn flags_of(bytes: &[u8], layout: ColumnLayout) -> u16 {
    let is_external = layout.attlen == -1 && bytes.first() == Some(&0x01);
    match layout.attlen {
        -1 if is_external => HEAP_HASVARWIDTH | HEAP_HASEXTERNAL,
        -1 | -2 => HEAP_HASVARWIDTH,
        _ => 0,
    }
}

/// Values with a header of one byte are not aligned.
fn append(row: &mut Vec<u8>, bytes: &[u8], layout: ColumnLayout) {
    let is_short = layout.attlen == -1 && bytes.first().is_some_and(|first| first & 1 == 1);
    if !is_short {
        let align = usize::from(layout.attalign.max(1));
        row.resize(row.len().next_multiple_of(align), 0);
    }
    row.extend_from_slice(bytes);
}
