//! The rows of a TOAST relation: the chunks of its values.
//!
//! ```text
//! 0          4           8
//! | chunk_id | chunk_seq | chunk_data, a varlena … |    behind the header of the row
//! ```
//!
//! Truth: `create_toast_table` in `src/backend/catalog/toasting.c`, `toast_save_datum` in
//! `src/backend/access/common/toast_internals.c`.

use std::ops::Range;

use crate::attribute::{Attribute, Attributes, ColumnLayout};
use crate::bytes::u32_at;
use crate::heap_tuple::{HEAP_HASNULL, HeapTuple};
use crate::types::Oid;
use crate::varlena::{self, Varlena};

const INTEGER: ColumnLayout = ColumnLayout {
    attlen: 4,
    attalign: 4,
};
const BYTEA: ColumnLayout = ColumnLayout {
    attlen: -1,
    attalign: 4,
};
/// `chunk_id oid`, `chunk_seq int4`, `chunk_data bytea`.
pub const CHUNK_COLUMNS: [ColumnLayout; 3] = [INTEGER, INTEGER, BYTEA];

/// A row of a TOAST relation whose three columns can be walked; what is null or makes no sense is
/// `None`.
#[derive(Clone, Debug)]
pub struct ToastChunk<'a> {
    /// The value it belongs to.
    pub chunk_id: Option<Oid>,
    /// Its place in the value, from 0.
    pub chunk_seq: Option<i32>,
    /// The bytes, and where they stand in the tuple.
    pub chunk_data: Option<(Varlena<'a>, Range<usize>)>,
}

impl<'a> ToastChunk<'a> {
    /// Nothing where a column begins or ends past the end of the tuple.
    #[inline]
    pub fn parse(tuple: HeapTuple<'a>) -> Option<Self> {
        let mut walk = Attributes::new(tuple, &CHUNK_COLUMNS);
        let mut next = || match walk.next()?.ok()? {
            Attribute::Value(range) => Some(Some((tuple.bytes().get(range.clone())?, range))),
            Attribute::Null | Attribute::Missing => Some(None),
        };
        let (id, seq, data) = (next()?, next()?, next()?);
        let word = |value: (&[u8], Range<usize>)| u32_at(value.0, 0);
        Some(ToastChunk {
            chunk_id: id.and_then(word),
            chunk_seq: seq.and_then(word).map(u32::cast_signed),
            chunk_data: data
                .and_then(|(bytes, range)| Some((varlena::parse(bytes).ok()?.0, range))),
        })
    }
}

/// A chunk as every server stores it: nothing is null, and the bytes stand there as they are.
#[derive(Clone, Copy, Debug)]
pub struct PlainChunk<'a> {
    /// The value it belongs to.
    pub value: Oid,
    /// Its place in the value, from 0.
    pub seq: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

impl<'a> PlainChunk<'a> {
    /// Nothing where the row is no such chunk.
    #[inline]
    pub fn parse(tuple: HeapTuple<'a>) -> Option<Self> {
        let is_plain = tuple.attribute_count() == 3 && !tuple.has(HEAP_HASNULL);
        let chunk = is_plain.then(|| ToastChunk::parse(tuple))??;
        Some(PlainChunk {
            value: chunk.chunk_id?,
            seq: chunk.chunk_seq?.cast_unsigned(),
            data: chunk.chunk_data?.0.as_it_is()?,
        })
    }
}
