//! What a column holds.

use std::sync::Arc;

use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, TimeUnit};

/// The kind of a column's values, with the bytes that a cell of it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
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
    List(Box<Kind>),
}

impl Kind {
    /// The bytes of a value; nothing where they differ from value to value.
    pub fn width(&self) -> Option<usize> {
        match self {
            Kind::Boolean => Some(1),
            Kind::Int16 => Some(2),
            Kind::Int32 | Kind::UInt32 | Kind::Float32 | Kind::Date => Some(4),
            Kind::Int64 | Kind::Float64 | Kind::Timestamp | Kind::TimestampUtc | Kind::Time => {
                Some(8)
            }
            Kind::Decimal { .. } | Kind::Uuid => Some(16),
            Kind::Text | Kind::Binary | Kind::List(_) => None,
        }
    }

    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Kind::Boolean => DataType::Boolean,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt32 => DataType::UInt32,
            Kind::Float32 => DataType::Float32,
            Kind::Float64 => DataType::Float64,
            Kind::Decimal { precision, scale } => {
                DataType::Decimal128(*precision, scale.cast_signed())
            }
            Kind::Text => DataType::Utf8,
            Kind::Binary => DataType::Binary,
            Kind::Date => DataType::Date32,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::TimestampUtc => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Kind::Time => DataType::Time64(TimeUnit::Microsecond),
            Kind::Uuid => DataType::FixedSizeBinary(16),
            Kind::List(element) => DataType::List(Arc::new(element.field("element"))),
        }
    }

    /// A column of this kind; any value may be null.
    pub(crate) fn field(&self, name: &str) -> arrow_schema::Field {
        let field = arrow_schema::Field::new(name, self.data_type(), true);
        match self {
            Kind::Uuid => field.with_extension_type(Uuid),
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
    pub kind: Kind,
}
