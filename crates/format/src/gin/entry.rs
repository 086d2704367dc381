//! An entry: a key, and the rows that have it, or the page below, or the one row that waits.
//!
//! ```text
//! 0       6        8 or 16 with a null
//! | t_tid | t_info | column number if there are several | key, or one byte that tells which null | … rows
//! ```
//!
//! What `t_tid` says depends on the page: on an inner page the block below, on a page of waiting
//! entries the row, on a leaf the place and number of the rows, or the root of a tree of rows.
//! Truth: `src/backend/access/gin/{README,ginentrypage.c}`, `src/include/access/itup.h`.

use std::fmt;

use crate::attribute::{AttributeFaultKind, ColumnLayout, length_of, start_of};
use crate::bytes::{block_at, tid_at, u16_at};
use crate::types::{BlockNo, Tid};

use super::posting_list::PostingRows;

const SIZE_MASK: u16 = 0x1FFF;
const NULL_MASK: u16 = 0x8000;
const HEADER_BYTES: usize = 8;
/// Header and bitmap of 32 columns, MAXALIGNed.
const HEADER_WITH_NULLS_BYTES: usize = 16;
/// `GIN_TREE_POSTING`.
const TREE_POSTING: u16 = 0xFFFF;
/// `GIN_ITUP_COMPRESSED`.
const COMPRESSED: u32 = 1 << 31;

/// What kind of null stands in place of a key (`GinNullCategory`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Category {
    /// A key.
    Key,
    /// A null among the keys of a value.
    NullKey,
    /// A value without keys.
    EmptyItem,
    /// A null in place of a value.
    NullItem,
}

/// How the keys of an index are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyShape<'a> {
    /// One a column of the index.
    pub columns: &'a [ColumnLayout],
}

/// A key with its column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a> {
    /// Column of the index, from 1.
    pub column: u16,
    /// Which null, or a key.
    pub category: Category,
    /// The key's bytes, varlena header included; empty for nulls.
    pub bytes: &'a [u8],
}

/// Why an entry cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryFault {
    /// It ends inside its header.
    Short {
        /// Bytes there are.
        len: usize,
    },
    /// Its own size is not that of its line pointer.
    Size {
        /// What the entry says.
        size: usize,
        /// What the line pointer says.
        len: usize,
    },
    /// The index has no such column.
    Column {
        /// What stands there.
        found: u16,
        /// Columns of the index.
        columns: usize,
    },
    /// The byte that tells which null is none of the three.
    Category {
        /// What stands there.
        found: u8,
    },
    /// The key does not lie in the entry.
    Key(AttributeFaultKind),
    /// The rows begin outside the entry, or inside its key.
    Rows {
        /// Where they begin.
        at: usize,
        /// Where the key ends.
        key_end: usize,
        /// Bytes of the entry.
        len: usize,
    },
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryFault::Short { len } => write!(f, "it ends after {len} bytes, inside its header"),
            EntryFault::Size { size, len } => {
                write!(
                    f,
                    "it says that it has {size} bytes, its line pointer says {len}"
                )
            }
            EntryFault::Column { found, columns } => {
                write!(f, "column number {found} in an index of {columns} columns")
            }
            EntryFault::Category { found } => {
                write!(f, "category {found} of a null is not one of 1 to 3")
            }
            EntryFault::Key(AttributeFaultKind::BeyondTuple { end, len }) => {
                write!(f, "its key ends at byte {end} of {len}")
            }
            EntryFault::Key(AttributeFaultKind::Varlena(_)) => {
                f.write_str("the length of its key makes no sense")
            }
            EntryFault::Key(AttributeFaultKind::Unterminated) => {
                f.write_str("its key has no closing zero")
            }
            EntryFault::Rows { at, key_end, len } => write!(
                f,
                "its rows begin at byte {at}, its key ends at {key_end} and the entry at {len}"
            ),
        }
    }
}

/// The rows of a leaf's entry.
#[derive(Clone, Debug)]
pub enum Posting<'a> {
    /// In a tree of their own, below this block.
    Tree(BlockNo),
    /// In the entry.
    List {
        /// How many the entry says there are.
        count: u16,
        /// The rows.
        rows: PostingRows<'a>,
    },
}

/// One entry. Promised: eight bytes are there. Nothing is promised about what they say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryTuple<'a> {
    bytes: &'a [u8],
}

impl<'a> EntryTuple<'a> {
    /// The bytes that a line pointer names.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(EntryTuple { bytes })
    }

    /// All bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// `t_tid` as it stands: on a page of waiting entries the row.
    pub fn t_tid(self) -> Tid {
        tid_at(self.bytes, 0).unwrap_or(Tid {
            block: 0,
            offset: 0,
        })
    }

    /// On an inner page the block below.
    pub fn downlink(self) -> BlockNo {
        block_at(self.bytes, 0).unwrap_or_default()
    }

    /// Bytes that the entry says it has.
    pub fn size(self) -> usize {
        usize::from(self.t_info() & SIZE_MASK)
    }

    /// A null stands in place of a key.
    pub fn has_null(self) -> bool {
        self.t_info() & NULL_MASK != 0
    }

    fn t_info(self) -> u16 {
        u16_at(self.bytes, 6).unwrap_or_default()
    }

    /// Its own size fits the line pointer, up to alignment.
    pub fn size_fault(self) -> Option<EntryFault> {
        let (size, len) = (self.size(), self.bytes.len());
        let fits = size.next_multiple_of(8) == len.next_multiple_of(8) && size >= HEADER_BYTES;
        (!fits).then_some(EntryFault::Size { size, len })
    }

    /// The key, and the byte after it.
    pub fn key(self, shape: KeyShape<'_>) -> Result<(Key<'a>, usize), EntryFault> {
        let len = self.bytes.len();
        let start = if self.has_null() {
            HEADER_WITH_NULLS_BYTES
        } else {
            HEADER_BYTES
        };
        let several = shape.columns.len() > 1;
        let column = if several {
            u16_at(self.bytes, start).ok_or(EntryFault::Short { len })?
        } else {
            1
        };
        let unknown = EntryFault::Column {
            found: column,
            columns: shape.columns.len(),
        };
        let index = usize::from(column).checked_sub(1).ok_or(unknown)?;
        let layout = *shape.columns.get(index).ok_or(unknown)?;
        let behind = if several { 2 } else { 0 };
        if self.has_null() {
            let at = start + behind;
            let byte = *self.bytes.get(at).ok_or(EntryFault::Short { len })?;
            let key = Key {
                column,
                category: category(byte)?,
                bytes: &[],
            };
            return Ok((key, at + 1));
        }
        let data = self.bytes.get(start..).ok_or(EntryFault::Short { len })?;
        let at = start_of(layout, data, behind);
        let bytes = length_of(layout, data, at).map_err(EntryFault::Key)?;
        let end = at.saturating_add(bytes);
        let beyond = AttributeFaultKind::BeyondTuple {
            end: end.saturating_add(start),
            len,
        };
        let key = data.get(at..end).ok_or(EntryFault::Key(beyond))?;
        Ok((
            Key {
                column,
                category: Category::Key,
                bytes: key,
            },
            start + end,
        ))
    }

    /// On a leaf the rows; nothing when they begin outside the entry.
    pub fn posting(self) -> Option<Posting<'a>> {
        let Tid { block, offset } = self.t_tid();
        if offset == TREE_POSTING {
            return Some(Posting::Tree(block));
        }
        let at = usize::try_from(block & !COMPRESSED).ok()?;
        let rows = match offset {
            0 => PostingRows::none(),
            _ if block & COMPRESSED != 0 => PostingRows::compressed(self.bytes.get(at..)?).0,
            _ => PostingRows::plain(self.bytes.get(at..)?, offset),
        };
        Some(Posting::List {
            count: offset,
            rows,
        })
    }

    /// On a leaf, whether the rows begin behind the key and inside the entry.
    pub fn rows_fault(self, key_end: usize) -> Option<EntryFault> {
        let Tid { block, offset } = self.t_tid();
        if offset == TREE_POSTING || offset == 0 {
            return None;
        }
        let (at, len) = (
            usize::try_from(block & !COMPRESSED).unwrap_or(usize::MAX),
            self.bytes.len(),
        );
        let outside = at < key_end || at >= len || !at.is_multiple_of(2);
        outside.then_some(EntryFault::Rows { at, key_end, len })
    }
}

fn category(byte: u8) -> Result<Category, EntryFault> {
    match byte {
        1 => Ok(Category::NullKey),
        2 => Ok(Category::EmptyItem),
        3 => Ok(Category::NullItem),
        found => Err(EntryFault::Category { found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: ColumnLayout = ColumnLayout {
        attlen: 4,
        attalign: 4,
    };
    const TEXT: ColumnLayout = ColumnLayout {
        attlen: -1,
        attalign: 4,
    };

    #[test]
    fn a_key_behind_its_column_number() {
        let bytes = [0, 0, 7, 0, 0, 0, 16, 0, 2, 0, 7, b'a', b'b', 0, 0, 0];
        let entry = EntryTuple::parse(&bytes).expect("a header");
        let shape = KeyShape {
            columns: &[INT, TEXT],
        };
        let key = Key {
            column: 2,
            category: Category::Key,
            bytes: &[7, b'a', b'b'],
        };
        assert_eq!(entry.key(shape), Ok((key, 13)));
        assert_eq!(entry.downlink(), 7);
        assert_eq!(entry.size_fault(), None);
        let one = KeyShape { columns: &[INT] };
        assert_eq!(entry.key(one).expect("four bytes").0.bytes, [2, 0, 7, b'a']);
    }

    #[test]
    fn a_null_tells_which() {
        let mut bytes = [0u8; 24];
        bytes[6..8].copy_from_slice(&(NULL_MASK | 24).to_le_bytes());
        bytes[16] = 3;
        let entry = EntryTuple::parse(&bytes).expect("a header");
        let shape = KeyShape { columns: &[TEXT] };
        let (key, end) = entry.key(shape).expect("a null");
        assert_eq!((key.category, end), (Category::NullItem, 17));
        bytes[16] = 9;
        let entry = EntryTuple::parse(&bytes).expect("a header");
        assert_eq!(entry.key(shape), Err(EntryFault::Category { found: 9 }));
    }

    #[test]
    fn a_column_that_the_index_has_not() {
        let bytes = [0, 0, 7, 0, 0, 0, 16, 0, 3, 0, 7, b'a', b'b', 0, 0, 0];
        let entry = EntryTuple::parse(&bytes).expect("a header");
        let fault = EntryFault::Column {
            found: 3,
            columns: 2,
        };
        assert_eq!(
            entry.key(KeyShape {
                columns: &[INT, TEXT]
            }),
            Err(fault)
        );
    }
}
