//! Walks the attributes of a tuple, checking every length on the way.
//!
//! Truth: `heap_deform_tuple` in `src/backend/access/common/heaptuple.c`, `att_align_pointer` in
//! `src/include/access/tupmacs.h`.

use std::ops::Range;

use crate::bytes::align_up;
use crate::heap_tuple::HeapTuple;
use crate::varlena::{self, TOAST_POINTER_BYTES, VARTAG_ONDISK, VarlenaFault};

/// What the walk needs to know of a column; dropped columns keep theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnLayout {
    /// Bytes of the value, -1 for a varlena, -2 for a C string.
    pub attlen: i16,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub attalign: u8,
}

/// One attribute of a tuple.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// The bitmap says null.
    Null,
    /// The tuple ends before this column: it was added later, its default stands in the catalog.
    Missing,
    /// Bytes of the tuple, with the varlena header where there is one.
    Value(Range<usize>),
}

/// Where and why the walk stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttributeFault {
    /// The attribute's number, from 1.
    pub attribute: u16,
    /// Offset in the tuple.
    pub at: usize,
    /// What is wrong there.
    pub kind: AttributeFaultKind,
}

/// What can be wrong with an attribute's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttributeFaultKind {
    /// It starts or ends behind the tuple's last byte.
    BeyondTuple {
        /// Offset of the byte after the attribute.
        end: usize,
        /// Bytes of the tuple.
        len: usize,
    },
    /// Its varlena header makes no sense.
    Varlena(VarlenaFault),
    /// A C string without its closing zero.
    Unterminated,
}

/// An iterator over all columns; it ends after the first fault.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    columns: std::slice::Iter<'a, ColumnLayout>,
    bitmap: Option<&'a [u8]>,
    stored: u16,
    number: u16,
    at: usize,
}

impl<'a> Attributes<'a> {
    /// Begins at `t_hoff`. A tuple may store fewer attributes than the relation has columns.
    pub fn new(tuple: HeapTuple<'a>, columns: &'a [ColumnLayout]) -> Self {
        Attributes {
            stored: tuple.attribute_count(),
            ..Attributes::walk(
                tuple.bytes(),
                tuple.null_bitmap(),
                usize::from(tuple.t_hoff()),
                columns,
            )
        }
    }

    /// Walks any tuple that stores all of `columns` from offset `at` on: an index tuple, say.
    pub fn walk(
        bytes: &'a [u8],
        bitmap: Option<&'a [u8]>,
        at: usize,
        columns: &'a [ColumnLayout],
    ) -> Self {
        Attributes {
            bytes,
            columns: columns.iter(),
            bitmap,
            stored: u16::MAX,
            number: 0,
            at,
        }
    }

    /// Offset in the tuple after the attributes seen so far.
    pub fn end(&self) -> usize {
        self.at
    }

    #[inline]
    fn is_null(&self) -> bool {
        let index = usize::from(self.number - 1);
        self.bitmap.is_some_and(|bits| {
            bits.get(index / 8)
                .is_none_or(|byte| byte & (1 << (index % 8)) == 0)
        })
    }

    #[inline]
    fn value(&mut self, column: ColumnLayout) -> Result<Range<usize>, AttributeFaultKind> {
        let bytes = self.bytes;
        let start = start_of(column, bytes, self.at);
        let len = length_of(column, bytes, start)?;
        let end = start.saturating_add(len);
        if end > bytes.len() {
            return Err(AttributeFaultKind::BeyondTuple {
                end,
                len: bytes.len(),
            });
        }
        self.at = end;
        Ok(start..end)
    }
}

impl Iterator for Attributes<'_> {
    type Item = Result<Attribute, AttributeFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let column = *self.columns.next()?;
        self.number += 1;
        if self.number > self.stored {
            return Some(Ok(Attribute::Missing));
        }
        if self.is_null() {
            return Some(Ok(Attribute::Null));
        }
        let at = self.at;
        match self.value(column) {
            Ok(range) => Some(Ok(Attribute::Value(range))),
            Err(kind) => {
                self.columns = [].iter();
                Some(Err(AttributeFault {
                    attribute: self.number,
                    at,
                    kind,
                }))
            }
        }
    }
}

/// A varlena with a 1-byte header stands unaligned: its first byte is never a zero of padding.
#[inline]
pub(crate) fn start_of(column: ColumnLayout, bytes: &[u8], at: usize) -> usize {
    let packed = column.attlen == -1 && bytes.get(at).is_some_and(|byte| *byte != 0);
    if packed {
        at
    } else {
        align_up(at, usize::from(column.attalign.max(1)))
    }
}

#[inline]
pub(crate) fn length_of(
    column: ColumnLayout,
    bytes: &[u8],
    start: usize,
) -> Result<usize, AttributeFaultKind> {
    if let Ok(len) = usize::try_from(column.attlen) {
        return Ok(len);
    }
    let beyond = AttributeFaultKind::BeyondTuple {
        end: start.saturating_add(1),
        len: bytes.len(),
    };
    let rest = bytes
        .get(start..)
        .filter(|rest| !rest.is_empty())
        .ok_or(beyond)?;
    if column.attlen == -1 {
        return varlena::total_len(rest).map_err(AttributeFaultKind::Varlena);
    }
    let zero = rest.iter().position(|byte| *byte == 0);
    zero.map(|position| position + 1)
        .ok_or(AttributeFaultKind::Unterminated)
}

/// The short walk, for tuples whose values are all there and stand as they are: no nulls, nothing
/// compressed or moved out. It is asked for every entry of every index, where [`Attributes`] costs
/// more than the rest of the work.
#[derive(Clone, Copy, Debug)]
pub struct PlainAttributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> PlainAttributes<'a> {
    /// From offset `at` on.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        PlainAttributes { bytes, at }
    }

    /// The next value, a varlena without its header. `None` for what is not plain or does not fit:
    /// the walk tells nothing more, and [`Attributes`] is to be asked.
    #[inline]
    pub fn payload(&mut self, column: ColumnLayout) -> Option<&'a [u8]> {
        if column.attlen != -1 {
            let len = usize::try_from(column.attlen).ok()?;
            let start = align_up(self.at, usize::from(column.attalign.max(1)));
            self.at = start.checked_add(len)?;
            return self.bytes.get(start..self.at);
        }
        let first = *self.bytes.get(self.at)?;
        if first & 1 == 1 {
            let start = self.at.checked_add(1)?;
            let end = self.at.checked_add(usize::from(first >> 1))?;
            // A length of 0 is a pointer to a value elsewhere.
            let payload = self.bytes.get(start..end)?;
            self.at = end;
            return Some(payload);
        }
        let start = align_up(self.at, usize::from(column.attalign.max(1)));
        let word = u32::from_le_bytes(*self.bytes.get(start..)?.first_chunk()?);
        (word & 3 == 0).then_some(())?;
        let end = start.checked_add(usize::try_from(word >> 2).ok()?)?;
        let payload = self.bytes.get(start.checked_add(4)?..end)?;
        self.at = end;
        Some(payload)
    }

    /// Offset in the tuple after the values seen so far.
    #[inline]
    pub fn end(&self) -> usize {
        self.at
    }

    /// Goes on behind a pointer to a value in TOAST; `false` where none stands here.
    #[inline]
    pub fn skip_external(&mut self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_pointer = rest.starts_with(&[0x01, VARTAG_ONDISK]);
        self.at += TOAST_POINTER_BYTES;
        is_pointer && rest.len() >= TOAST_POINTER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::TupleBuilder;

    const INT: ColumnLayout = ColumnLayout {
        attlen: 4,
        attalign: 4,
    };
    const TEXT: ColumnLayout = ColumnLayout {
        attlen: -1,
        attalign: 4,
    };
    const BIGINT: ColumnLayout = ColumnLayout {
        attlen: 8,
        attalign: 8,
    };

    fn walk(tuple: &[u8], columns: &[ColumnLayout]) -> Vec<Result<Attribute, AttributeFault>> {
        Attributes::new(HeapTuple::parse(tuple).expect("a header"), columns).collect()
    }

    #[test]
    fn short_values_stand_unaligned_and_missing_columns_are_said() {
        let tuple = TupleBuilder::new(3)
            .data(&[1, 0, 0, 0, 0x07, b'a', b'b', 0])
            .data(&[9; 8])
            .finish();
        let seen = walk(&tuple, &[INT, TEXT, BIGINT, INT]);
        let expected = [
            Ok(Attribute::Value(24..28)),
            Ok(Attribute::Value(28..31)),
            Ok(Attribute::Value(32..40)),
            Ok(Attribute::Missing),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn nulls_take_no_room() {
        let tuple = TupleBuilder::new(2)
            .nulls(&[0b10])
            .data(&[5, 0, 0, 0])
            .finish();
        assert_eq!(
            walk(&tuple, &[TEXT, INT]),
            [Ok(Attribute::Null), Ok(Attribute::Value(24..28))]
        );
    }

    #[test]
    fn the_walk_ends_at_the_first_fault() {
        let tuple = TupleBuilder::new(2).data(&[0x81, b'x', 0, 0]).finish();
        let seen = walk(&tuple, &[TEXT, INT]);
        assert_eq!(seen.len(), 1);
        let fault = seen
            .into_iter()
            .next()
            .expect("one")
            .expect_err("64 bytes in 4");
        let claimed = VarlenaFault::Beyond {
            claimed: 64,
            available: 4,
        };
        assert_eq!(
            fault,
            AttributeFault {
                attribute: 1,
                at: 24,
                kind: AttributeFaultKind::Varlena(claimed)
            }
        );
    }
}
