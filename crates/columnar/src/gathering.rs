//! The values of one column, until there are enough of them for a batch.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, PrimitiveArray,
    StringArray,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::ArrowError;

use crate::cells;
use crate::kind::{ColumnKind, UTC};

/// Values that are gathered.
pub(crate) struct Gathering {
    kind: ColumnKind,
    rows: usize,
    present: BooleanBufferBuilder,
    /// Bytes of values; of a list nothing, of booleans one byte each.
    bytes: MutableBuffer,
    /// Where each value of no fixed width ends, and a zero in front.
    ends: Vec<i32>,
    /// What lists hold.
    elements: Option<Box<Gathering>>,
}

impl Gathering {
    pub(crate) fn new(kind: &ColumnKind) -> Self {
        let elements = match kind {
            ColumnKind::List(element) => Some(Box::new(Gathering::new(element))),
            _ => None,
        };
        Gathering {
            kind: kind.clone(),
            rows: 0,
            present: BooleanBufferBuilder::new(0),
            bytes: MutableBuffer::new(0),
            ends: vec![0],
            elements,
        }
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        let elements = self.elements.as_ref().map_or(0, |elements| elements.held());
        self.bytes.len() + self.ends.len() * size_of::<i32>() + self.rows / 8 + elements
    }

    /// The next value.
    pub(crate) fn add(&mut self, value: Option<&[u8]>) -> Result<(), ArrowError> {
        self.rows += 1;
        self.present.append(value.is_some());
        match (self.kind.width(), value) {
            (Some(width), Some(value)) if value.len() != width => {
                return Err(wrong(&self.kind, value.len()));
            }
            (Some(_), Some(value)) => self.bytes.extend_from_slice(value),
            (Some(width), None) => self.bytes.extend_zeros(width),
            (None, value) => self.add_long(value.unwrap_or_default())?,
        }
        Ok(())
    }

    fn add_long(&mut self, mut value: &[u8]) -> Result<(), ArrowError> {
        let end = match &mut self.elements {
            Some(elements) => {
                while let Some(element) = cells::take(&mut value) {
                    elements.add(element)?;
                }
                elements.rows
            }
            None => {
                self.bytes.extend_from_slice(value);
                self.bytes.len()
            }
        };
        let end = i32::try_from(end).map_err(|_| wrong(&self.kind, end))?;
        self.ends.push(end);
        Ok(())
    }

    /// Most of the values so far are there only once. Of lists nothing is known.
    pub(crate) fn is_varied(&self) -> bool {
        let bytes = self.bytes.as_slice();
        let distinct: HashSet<&[u8]> = match (&self.elements, self.kind.width()) {
            (Some(_), _) => return false,
            (None, Some(width)) => bytes.chunks_exact(width).collect(),
            (None, None) => {
                let ends = self.ends.iter().map(|end| usize::try_from(*end).ok());
                let ranges = ends.clone().zip(ends.skip(1));
                ranges
                    .filter_map(|(from, to)| bytes.get(from?..to?))
                    .collect()
            }
        };
        distinct.len() > self.rows / 2
    }

    /// All values so far as an array; none are left.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = take(&mut self.rows);
        let nulls = NullBuffer::new(self.present.finish());
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let bytes: Buffer = take(&mut self.bytes).into();
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(match &self.kind {
            ColumnKind::Boolean => {
                let values = bytes.iter().map(|byte| *byte != 0).collect();
                Arc::new(BooleanArray::new(values, nulls))
            }
            ColumnKind::Int16 => Arc::new(fixed::<Int16Type>(bytes, rows, nulls)),
            ColumnKind::Int32 => Arc::new(fixed::<Int32Type>(bytes, rows, nulls)),
            ColumnKind::Int64 => Arc::new(fixed::<Int64Type>(bytes, rows, nulls)),
            ColumnKind::UInt32 => Arc::new(fixed::<UInt32Type>(bytes, rows, nulls)),
            ColumnKind::Float32 => Arc::new(fixed::<Float32Type>(bytes, rows, nulls)),
            ColumnKind::Float64 => Arc::new(fixed::<Float64Type>(bytes, rows, nulls)),
            ColumnKind::Date => Arc::new(fixed::<Date32Type>(bytes, rows, nulls)),
            ColumnKind::Time => Arc::new(fixed::<Time64MicrosecondType>(bytes, rows, nulls)),
            ColumnKind::Timestamp => {
                Arc::new(fixed::<TimestampMicrosecondType>(bytes, rows, nulls))
            }
            ColumnKind::TimestampUtc => {
                let values = fixed::<TimestampMicrosecondType>(bytes, rows, nulls);
                Arc::new(values.with_timezone(UTC))
            }
            ColumnKind::Decimal { precision, scale } => {
                let values = fixed::<Decimal128Type>(bytes, rows, nulls);
                Arc::new(values.with_precision_and_scale(*precision, scale.cast_signed())?)
            }
            ColumnKind::Uuid => Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?),
            ColumnKind::Text => Arc::new(StringArray::try_new(ends, bytes, nulls)?),
            ColumnKind::Binary => Arc::new(BinaryArray::try_new(ends, bytes, nulls)?),
            ColumnKind::List(element) => {
                let values = match &mut self.elements {
                    Some(elements) => elements.finish()?,
                    None => Gathering::new(element).finish()?,
                };
                let field = Arc::new(element.field("element"));
                Arc::new(ListArray::try_new(field, ends, values, nulls)?)
            }
        })
    }
}

fn fixed<T: ArrowPrimitiveType>(
    bytes: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    PrimitiveArray::new(ScalarBuffer::new(bytes, 0, rows), nulls)
}

fn wrong(kind: &ColumnKind, length: usize) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{length} bytes are no value of {kind:?}"))
}
