//! What a column holds.

use std::sync::Arc;

use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, TimeUnit};

/// The kind of a column's values, with the bytes that a cell of it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// One byte, 0 or 1.
    Boolean,
    /// 2 bytes.
    Int16,
    /// 4 bytes.
    Int32,
    /// 8 bytes.
    Int64,
    /// 4 bytes, without a sign.
    UInt32,
    /// 4 bytes.
    Float32,
    /// 8 bytes.
    Float64,
    /// 16 bytes: the number times ten to the power of `scale`.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits behind the point, at most all.
        scale: u8,
    },
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
    /// 4 bytes: days since 1970-01-01.
    Date,
    /// 8 bytes: microseconds since 1970-01-01 of whatever zone.
    Timestamp,
    /// 8 bytes: microseconds since 1970-01-01 UTC.
    TimestampUtc,
    /// 8 bytes: microseconds since midnight, less than a day.
    Time,
    /// 16 bytes in the order in which they are written.
    Uuid,
    /// Cells of this kind.
    List(Box<ColumnKind>),
}

impl ColumnKind {
    /// The bytes of a value; nothing where they differ from value to value.
    pub fn width(&self) -> Option<usize> {
        match self {
            ColumnKind::Boolean => Some(1),
            ColumnKind::Int16 => Some(2),
            ColumnKind::Int32 | ColumnKind::UInt32 | ColumnKind::Float32 | ColumnKind::Date => {
                Some(4)
            }
            ColumnKind::Int64
            | ColumnKind::Float64
            | ColumnKind::Timestamp
            | ColumnKind::TimestampUtc
            | ColumnKind::Time => Some(8),
            ColumnKind::Decimal { .. } | ColumnKind::Uuid => Some(16),
            ColumnKind::Text | ColumnKind::Binary | ColumnKind::List(_) => None,
        }
    }

    pub(crate) fn data_type(&self) -> DataType {
        match self {
            ColumnKind::Boolean => DataType::Boolean,
            ColumnKind::Int16 => DataType::Int16,
            ColumnKind::Int32 => DataType::Int32,
            ColumnKind::Int64 => DataType::Int64,
            ColumnKind::UInt32 => DataType::UInt32,
            ColumnKind::Float32 => DataType::Float32,
            ColumnKind::Float64 => DataType::Float64,
            ColumnKind::Decimal { precision, scale } => {
                DataType::Decimal128(*precision, scale.cast_signed())
            }
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Binary => DataType::Binary,
            ColumnKind::Date => DataType::Date32,
            ColumnKind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            ColumnKind::TimestampUtc => {
                DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
            }
            ColumnKind::Time => DataType::Time64(TimeUnit::Microsecond),
            ColumnKind::Uuid => DataType::FixedSizeBinary(16),
            ColumnKind::List(element) => DataType::List(Arc::new(element.field("element"))),
        }
    }

    /// A column of this kind; any value may be null.
    pub(crate) fn field(&self, name: &str) -> arrow_schema::Field {
        let field = arrow_schema::Field::new(name, self.data_type(), true);
        match self {
            ColumnKind::Uuid => field.with_extension_type(Uuid),
            _ => field,
        }
    }
}

/// The name of the zone of timestamps that have one.
pub(crate) const UTC: &str = "UTC";

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
}
