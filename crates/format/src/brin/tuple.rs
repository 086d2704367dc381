//! The summary of one range (`BrinTuple`).
//!
//! ```text
//! 0          4         5
//! | bt_blkno | bt_info | all-nulls bits, has-nulls bits, one a column … | stored values, MAXALIGNed
//! ```
//!
//! A column stores one to three values, by its operator class; none when all its values are null.
//! Truth: `src/include/access/brin_tuple.h`, `src/backend/access/brin/brin_tuple.c`.

use std::fmt;
use std::ops::Range;

use crate::attribute::{AttributeFaultKind, ColumnLayout, length_of, start_of};
use crate::bytes::u32_at;
use crate::types::BlockNo;

const INFO_AT: usize = 4;
/// `SizeOfBrinTuple`.
const HEADER_BYTES: usize = 5;
const OFFSET_MASK: u8 = 0x1F;
const EMPTY_RANGE: u8 = 0x20;
const PLACEHOLDER: u8 = 0x40;
const NULLS: u8 = 0x80;

/// Nulls of one column in a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NullBits {
    /// There is nothing but nulls, or nothing at all: no value is stored.
    pub all: bool,
    /// There are nulls beside values.
    pub some: bool,
}

/// Why a summary cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SummaryFault {
    /// Its values do not begin where its header ends.
    Header {
        /// Where they begin.
        found: usize,
        /// Where the header ends.
        expected: usize,
    },
    /// It is shorter than its header.
    Short {
        /// Bytes there are.
        len: usize,
    },
    /// A stored value does not lie in it.
    Value {
        /// Column of the index, from 1.
        column: u16,
        /// Why.
        kind: AttributeFaultKind,
    },
    /// It is longer than its values need.
    Long {
        /// Where its values end, MAXALIGNed.
        expected: usize,
        /// Bytes there are.
        len: usize,
    },
}

impl fmt::Display for SummaryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SummaryFault::Header { found, expected } => {
                write!(
                    f,
                    "its values begin at byte {found}, its header ends at {expected}"
                )
            }
            SummaryFault::Short { len } => write!(f, "its header does not fit into {len} bytes"),
            SummaryFault::Value { column, kind } => match kind {
                AttributeFaultKind::BeyondTuple { end, len } => {
                    write!(f, "a value of column {column} ends at byte {end} of {len}")
                }
                AttributeFaultKind::Varlena(_) => {
                    write!(f, "the length of a value of column {column} makes no sense")
                }
                AttributeFaultKind::Unterminated => {
                    write!(f, "a value of column {column} has no closing zero")
                }
            },
            SummaryFault::Long { expected, len } => {
                write!(f, "its values end at byte {expected}, it has {len}")
            }
        }
    }
}

/// Where the values of each column stand in the summary; nothing for a column without.
pub type Values = Vec<Option<Vec<Range<usize>>>>;

/// One summary. Promised: five bytes are there. Nothing is promised about what they say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrinTuple<'a> {
    bytes: &'a [u8],
}

impl<'a> BrinTuple<'a> {
    /// The bytes that a line pointer names.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(BrinTuple { bytes })
    }

    /// All bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// First block of its range.
    pub fn bt_blkno(self) -> BlockNo {
        u32_at(self.bytes, 0).unwrap_or_default()
    }

    /// `bt_info`.
    pub fn bt_info(self) -> u8 {
        self.bytes.get(INFO_AT).copied().unwrap_or_default()
    }

    /// Where its values begin.
    pub fn data_at(self) -> usize {
        usize::from(self.bt_info() & OFFSET_MASK)
    }

    /// Bits for nulls are stored.
    pub fn has_nulls(self) -> bool {
        self.bt_info() & NULLS != 0
    }

    /// Left by a summarising that did not come to its end: the range counts as matching everything.
    pub fn is_placeholder(self) -> bool {
        self.bt_info() & PLACEHOLDER != 0
    }

    /// No row was in the range when it was summarised; since May 2023 in all majors.
    pub fn is_empty_range(self) -> bool {
        self.bt_info() & EMPTY_RANGE != 0
    }

    /// Where its values must begin in an index of so many columns.
    pub fn expected_data_at(self, columns: usize) -> usize {
        let bits = if self.has_nulls() {
            columns.saturating_mul(2)
        } else {
            0
        };
        (HEADER_BYTES + bits.div_ceil(8)).next_multiple_of(8)
    }

    /// The bits of `column`, from 0, in an index of so many columns.
    pub fn null_bits(self, column: usize, columns: usize) -> NullBits {
        if !self.has_nulls() {
            return NullBits::default();
        }
        let bit = |index: usize| {
            let byte = self.bytes.get(HEADER_BYTES + index / 8);
            byte.is_some_and(|byte| byte >> (index % 8) & 1 == 1)
        };
        NullBits {
            all: bit(column),
            some: bit(columns.saturating_add(column)),
        }
    }

    /// Finds the stored values; `stored` says for each column of the index what it stores.
    pub fn values(self, stored: &[Vec<ColumnLayout>]) -> Result<Values, SummaryFault> {
        let (columns, len) = (stored.len(), self.bytes.len());
        let expected = self.expected_data_at(columns);
        let found = self.data_at();
        if found != expected {
            return Err(SummaryFault::Header { found, expected });
        }
        let data = self.bytes.get(found..).ok_or(SummaryFault::Short { len })?;
        let mut at = 0usize;
        let mut values = Values::with_capacity(columns);
        for ((index, layouts), number) in stored.iter().enumerate().zip(1u16..) {
            if self.null_bits(index, columns).all {
                values.push(None);
                continue;
            }
            let mut places = Vec::with_capacity(layouts.len());
            for layout in layouts {
                let fault = |kind| SummaryFault::Value {
                    column: number,
                    kind,
                };
                let start = start_of(*layout, data, at);
                let end = start.saturating_add(length_of(*layout, data, start).map_err(fault)?);
                if end > data.len() {
                    let end = end.saturating_add(found);
                    return Err(fault(AttributeFaultKind::BeyondTuple { end, len }));
                }
                places.push(start + found..end + found);
                at = end;
            }
            values.push(Some(places));
        }
        let expected = found.saturating_add(at).next_multiple_of(8);
        if expected != len {
            return Err(SummaryFault::Long { expected, len });
        }
        Ok(values)
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
    fn values_stand_behind_the_header() {
        let mut bytes = vec![128, 0, 0, 0, 8, 0, 0, 0];
        bytes.extend([1, 0, 0, 0, 9, 0, 0, 0, 5, b'a', 5, b'z', 0, 0, 0, 0]);
        let summary = BrinTuple::parse(&bytes).expect("a header");
        assert_eq!(summary.bt_blkno(), 128);
        let stored = [vec![INT, INT], vec![TEXT, TEXT]];
        let values = summary.values(&stored).expect("whole");
        assert_eq!(
            values,
            [Some(vec![8..12, 12..16]), Some(vec![16..18, 18..20])]
        );
        let long = SummaryFault::Long {
            expected: 16,
            len: 24,
        };
        assert_eq!(summary.values(&stored[..1]), Err(long));
    }

    #[test]
    fn a_column_of_nulls_stores_nothing() {
        let bytes = [0, 0, 0, 0, NULLS | 8, 0b0110, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0];
        let summary = BrinTuple::parse(&bytes).expect("a header");
        let stored = [vec![INT, INT], vec![TEXT, TEXT]];
        assert_eq!(
            summary.values(&stored).expect("whole"),
            [Some(vec![8..12, 12..16]), None]
        );
        assert_eq!(
            summary.null_bits(0, 2),
            NullBits {
                all: false,
                some: true
            }
        );
        assert_eq!(
            summary.null_bits(1, 2),
            NullBits {
                all: true,
                some: false
            }
        );
    }

    #[test]
    fn values_that_begin_elsewhere_are_told() {
        let bytes = [0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
        let summary = BrinTuple::parse(&bytes).expect("a header");
        let fault = SummaryFault::Header {
            found: 16,
            expected: 8,
        };
        assert_eq!(summary.values(&[vec![INT, INT]]), Err(fault));
    }
}
