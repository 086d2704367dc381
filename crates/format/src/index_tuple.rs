//! The index tuple of btree, hash and GiST, and the node of an SP-GiST inner tuple.
//!
//! ```text
//! 0        6        8              8 or 16
//! | t_tid  | t_info | null bitmap? | attributes …
//! ```
//!
//! The bitmap has a bit for each of 32 columns, however many the index has. What `t_tid` and the
//! access method's bit mean is the access method's affair.
//!
//! Truth: `src/include/access/itup.h`, `src/backend/access/common/indextuple.c`.

use crate::attribute::{Attributes, ColumnLayout};
use crate::bytes::{align_up, u16_at};
use crate::types::{MAXALIGN, Tid};

/// Bytes of the header, without the bitmap of nulls.
pub const HEADER_BYTES: usize = 8;
/// Bytes of the bitmap of nulls: INDEX_MAX_KEYS is 32.
pub const NULL_BITMAP_BYTES: usize = 4;
/// `INDEX_SIZE_MASK`.
pub const INDEX_SIZE_MASK: u16 = 0x1FFF;
/// `INDEX_AM_RESERVED_BIT`.
pub const INDEX_AM_RESERVED_BIT: u16 = 0x2000;
/// `INDEX_VAR_MASK`: some attribute has no fixed width.
pub const INDEX_VAR_MASK: u16 = 0x4000;
/// `INDEX_NULL_MASK`: there is a bitmap of nulls.
pub const INDEX_NULL_MASK: u16 = 0x8000;

/// A view of one index tuple. Promised: the 8 bytes of the header are there.
#[derive(Clone, Copy, Debug)]
pub struct IndexTuple<'a> {
    header: &'a [u8; HEADER_BYTES],
    bytes: &'a [u8],
}

impl<'a> IndexTuple<'a> {
    /// The tuple at the start of an item's bytes, unless they are too short for a header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk()?;
        Some(IndexTuple { header, bytes })
    }

    /// The bytes that were given, which may be more or fewer than [`IndexTuple::size`] says.
    #[inline]
    pub fn item(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of the tuple: as many as it claims, no more than there are.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes.get(..self.size()).unwrap_or(self.bytes)
    }

    #[inline]
    fn u16(self, at: usize) -> u16 {
        u16_at(self.header, at).unwrap_or_default()
    }

    /// The row, the child, or what else the access method keeps here. The block is stored as two
    /// halves.
    #[inline]
    pub fn t_tid(self) -> Tid {
        Tid {
            block: u32::from(self.u16(0)) << 16 | u32::from(self.u16(2)),
            offset: self.u16(4),
        }
    }

    /// Size and flags.
    #[inline]
    pub fn t_info(self) -> u16 {
        self.u16(6)
    }

    /// The size that the tuple claims, in bytes, header included.
    #[inline]
    pub fn size(self) -> usize {
        usize::from(self.t_info() & INDEX_SIZE_MASK)
    }

    /// All bits of `flag` are set in `t_info`.
    #[inline]
    pub fn has(self, flag: u16) -> bool {
        self.t_info() & flag == flag
    }

    /// Where the first attribute begins, MAXALIGNed; it may lie behind the tuple's end.
    #[inline]
    pub fn data_offset(self) -> usize {
        if self.has(INDEX_NULL_MASK) {
            align_up(HEADER_BYTES + NULL_BITMAP_BYTES, MAXALIGN)
        } else {
            HEADER_BYTES
        }
    }

    /// The bitmap of nulls: a set bit is a value. `None` without the flag or when it is cut.
    #[inline]
    pub fn null_bitmap(self) -> Option<&'a [u8]> {
        self.has(INDEX_NULL_MASK).then_some(())?;
        self.bytes()
            .get(HEADER_BYTES..HEADER_BYTES + NULL_BITMAP_BYTES)
    }

    /// The bytes behind header and bitmap; empty when the tuple ends before.
    #[inline]
    pub fn data(self) -> &'a [u8] {
        self.bytes().get(self.data_offset()..).unwrap_or_default()
    }

    /// The attributes, with ranges in [`IndexTuple::bytes`]. The caller gives as many columns as
    /// the tuple stores: a pivot of a btree, or an inner key of GiST, has fewer than the index.
    #[inline]
    pub fn attributes(self, columns: &'a [ColumnLayout]) -> Attributes<'a> {
        Attributes::walk(
            self.bytes(),
            self.null_bitmap(),
            self.data_offset(),
            columns,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Attribute, AttributeFaultKind};

    const COLUMNS: [ColumnLayout; 2] = [
        ColumnLayout {
            attlen: 4,
            attalign: 4,
        },
        ColumnLayout {
            attlen: 8,
            attalign: 8,
        },
    ];

    #[test]
    fn a_tuple_with_a_null_begins_its_values_behind_the_bitmap() {
        let mut bytes = vec![1, 0, 2, 0, 3, 0, 24, 0x80];
        bytes.extend([0b10, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([7; 8]);
        let tuple = IndexTuple::parse(&bytes).expect("a header");
        assert_eq!(
            tuple.t_tid(),
            Tid {
                block: 0x0001_0002,
                offset: 3
            }
        );
        assert_eq!((tuple.size(), tuple.data_offset()), (24, 16));
        let seen: Vec<_> = tuple.attributes(&COLUMNS).collect();
        assert_eq!(seen, [Ok(Attribute::Null), Ok(Attribute::Value(16..24))]);
    }

    #[test]
    fn a_size_beyond_the_item_is_not_believed() {
        let bytes = [0, 0, 0, 0, 1, 0, 0xFF, 0x1F, 5, 0, 0, 0, 0, 0, 0, 0];
        let tuple = IndexTuple::parse(&bytes).expect("a header");
        assert_eq!((tuple.size(), tuple.bytes().len()), (8191, 16));
        let last = tuple.attributes(&COLUMNS).last().expect("two steps");
        let beyond = AttributeFaultKind::BeyondTuple { end: 24, len: 16 };
        assert_eq!(last.map_err(|fault| fault.kind), Err(beyond));
    }

    #[test]
    fn a_size_below_the_header_leaves_nothing() {
        let tuple = IndexTuple::parse(&[0; 16]).expect("a header");
        assert_eq!((tuple.bytes(), tuple.data()), (&[][..], &[][..]));
    }
}
