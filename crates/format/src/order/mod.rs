//! Which of two values comes first: the comparison of each built-in btree operator class.
//!
//! ```text
//! OrderKey (operator family, its input type, the column's type, collation)
//!    └─ order_of ──► Order ── compare(a, b) ──► Less, Equal, Greater, or nothing: one does not decode
//!            └─────► Unordered, with the reason for people
//! ```
//!
//! An [`Order`] is chosen once for a column. The bytes are those that [`crate::datum`] takes: all
//! of a fixed-size value, or the payload of a varlena after its header was taken off and it was
//! fetched and decompressed. `Equal` is what a unique index calls a duplicate.
//!
//! Truth: `pg_amproc.dat` for the functions, and those in `src/backend/utils/adt/` and
//! `src/backend/access/nbtree/nbtcompare.c`; each file here names its own.

mod array;
mod bits;
mod choose;
mod enumeration;
mod jsonb;
mod network;
mod number;
mod numeric;
mod range;
mod record;
mod text;
mod text_order;
mod tsquery;
mod tsvector;
mod unordered;

use std::cmp::Ordering;

pub use choose::{OrderKey, default_order_of, equality_of, order_of};
pub use number::Word;
pub use text_order::{BuiltInFacts, Facts, ForeignCollation, RangeFacts, TextOrder};
pub use unordered::Unordered;

use crate::datum::element::Unpacking;

/// All that compressed parts of two compared values may unpack to, in bytes.
const UNPACKED_BYTES: usize = 64 << 20;

/// How two values of a column compare.
#[derive(Clone, Debug)]
pub struct Order(Comparison);

impl Order {
    /// Compares two values that are not null, in ascending order; `None` when one of them does not
    /// decode.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        match &self.0 {
            Comparison::I16 => number::fixed(a, b, i16::from_le_bytes),
            Comparison::I32 => number::fixed(a, b, i32::from_le_bytes),
            Comparison::I64 => number::fixed(a, b, i64::from_le_bytes),
            Comparison::U32 => number::fixed(a, b, u32::from_le_bytes),
            Comparison::F32 => number::floats(a, b, f32::from_le_bytes),
            Comparison::F64 => number::floats(a, b, f64::from_le_bytes),
            Comparison::Uuid => number::fixed(a, b, u128::from_be_bytes),
            Comparison::Bytes => Some(a.cmp(b)),
            other => other.compare_any(a, b),
        }
    }

    /// The words of each value, where values are of fixed size and compare as those words do.
    pub fn words(&self) -> Option<Vec<Word>> {
        Word::all_of(&self.0)
    }

    /// Whether one range holds all of another; `None` when this orders no ranges, or one of them
    /// does not decode.
    pub fn contains(&self, outer: &[u8], inner: &[u8]) -> Option<bool> {
        let Comparison::Range(bounds) = &self.0 else {
            return None;
        };
        let mut unpacking = Unpacking {
            left: UNPACKED_BYTES,
        };
        bounds.contains(&mut unpacking, outer, inner)
    }
}

/// The comparison of one operator class; those of values with parts hold the parts' comparisons.
#[derive(Clone, Debug)]
enum Comparison {
    U8,
    I16,
    I32,
    I64,
    U32,
    U64,
    F32,
    F64,
    Uuid,
    MacAddress,
    MacAddress8,
    Tid,
    Interval,
    TimeWithZone,
    /// Byte by byte, the shorter one first.
    Bytes,
    /// Bytes, blanks at the end left out.
    Blanked,
    /// Bytes up to the first zero.
    Name,
    Numeric,
    Network,
    Bits,
    OidVector,
    Jsonb,
    TsVector,
    TsQuery,
    Enum(enumeration::Labels),
    Array(Box<array::Elements>),
    Range(Box<range::Bounds>),
    Multirange(Box<range::Bounds>),
    Record(Box<[record::Part]>),
    /// The bytes of a value passed by value, as one unsigned number.
    Image,
    /// The bytes of a value of fixed size.
    FixedImage,
}

impl Comparison {
    #[inline(never)]
    fn compare_any(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let mut unpacking = Unpacking {
            left: UNPACKED_BYTES,
        };
        self.compare(&mut unpacking, a, b)
    }

    /// Calls itself no deeper than types hold each other.
    fn compare(&self, unpacking: &mut Unpacking, a: &[u8], b: &[u8]) -> Option<Ordering> {
        match self {
            Comparison::U8 => number::fixed(a, b, u8::from_le_bytes),
            Comparison::I16 => number::fixed(a, b, i16::from_le_bytes),
            Comparison::I32 => number::fixed(a, b, i32::from_le_bytes),
            Comparison::I64 => number::fixed(a, b, i64::from_le_bytes),
            Comparison::U32 => number::fixed(a, b, u32::from_le_bytes),
            Comparison::U64 => number::fixed(a, b, u64::from_le_bytes),
            Comparison::F32 => number::floats(a, b, f32::from_le_bytes),
            Comparison::F64 => number::floats(a, b, f64::from_le_bytes),
            Comparison::Uuid => number::fixed(a, b, u128::from_be_bytes),
            Comparison::MacAddress => number::fixed(a, b, |bytes: [u8; 6]| bytes),
            Comparison::MacAddress8 => number::fixed(a, b, u64::from_be_bytes),
            Comparison::Tid => number::fixed(a, b, number::tid),
            Comparison::Interval => number::fixed(a, b, number::interval),
            Comparison::TimeWithZone => number::fixed(a, b, number::time_with_zone),
            Comparison::Bytes => Some(a.cmp(b)),
            Comparison::Blanked => Some(text::without_blanks(a).cmp(text::without_blanks(b))),
            Comparison::Name => Some(text::compare_names(a, b)),
            Comparison::Numeric => numeric::compare(a, b),
            Comparison::Network => network::compare(a, b),
            Comparison::Bits => bits::compare(a, b),
            Comparison::OidVector => array::compare_oid_vectors(a, b),
            Comparison::Jsonb => jsonb::compare(unpacking, a, b),
            Comparison::TsVector => tsvector::compare(a, b),
            Comparison::TsQuery => tsquery::compare(a, b),
            Comparison::Enum(labels) => labels.compare(a, b),
            Comparison::Array(elements) => elements.compare(unpacking, a, b),
            Comparison::Range(bounds) => bounds.compare_ranges(unpacking, a, b),
            Comparison::Multirange(bounds) => bounds.compare_multiranges(unpacking, a, b),
            Comparison::Record(parts) => record::compare(unpacking, parts, a, b),
            Comparison::Image => number::images(a, b),
            Comparison::FixedImage => (a.len() == b.len()).then(|| a.cmp(b)),
        }
    }
}
