//! The rows of a TOAST relation: `(chunk_id oid, chunk_seq int4, chunk_data bytea)`.
//!
//! Truth: `create_toast_table` in `src/backend/catalog/toasting.c`, `toast_save_datum` in
//! `src/backend/access/common/toast_internals.c`.

use std::fmt;
use std::ops::Range;

use pgclinic_format::{Attribute, Attributes, ColumnLayout, Oid, Page, Varlena, varlena};

use crate::tuples::{StoredTuple, tuples};

const INTEGER: ColumnLayout = ColumnLayout {
    attlen: 4,
    attalign: 4,
};
const BYTEA: ColumnLayout = ColumnLayout {
    attlen: -1,
    attalign: 4,
};
const COLUMNS: [ColumnLayout; 3] = [INTEGER, INTEGER, BYTEA];

/// One chunk; what is null stays `None`.
pub(crate) struct Chunk<'a> {
    /// Its tuple.
    pub(crate) stored: StoredTuple<'a>,
    /// The value it belongs to.
    pub(crate) chunk_id: Option<Oid>,
    /// Its place in the value, from 0.
    pub(crate) chunk_seq: Option<i32>,
    /// The bytes, and where they stand in the tuple.
    pub(crate) chunk_data: Option<(Varlena<'a>, Range<usize>)>,
}

impl fmt::Display for Chunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.chunk_seq, self.chunk_id) {
            (Some(number), Some(value)) => write!(f, "chunk {number} of value {value}"),
            (Some(number), None) => write!(f, "chunk {number} of no value"),
            (None, Some(value)) => write!(f, "chunk of value {value}"),
            (None, None) => f.write_str("chunk of no value"),
        }
    }
}

/// The chunks of a page whose three columns can be walked.
pub(crate) fn chunks(page: Page<'_>) -> impl Iterator<Item = Chunk<'_>> {
    tuples(page).filter_map(chunk)
}

fn chunk(stored: StoredTuple<'_>) -> Option<Chunk<'_>> {
    let tuple = stored.tuple;
    let header_is_right = usize::from(tuple.t_hoff()) == tuple.expected_hoff()
        && usize::from(tuple.attribute_count()) <= COLUMNS.len();
    let mut walk = Attributes::new(tuple, &COLUMNS);
    let mut next = || {
        header_is_right
            .then(|| walk.next())?
            .and_then(|found| found.ok())
    };
    let (id, seq, data) = (next()?, next()?, next()?);
    Some(Chunk {
        stored,
        chunk_id: word(stored, id),
        chunk_seq: word(stored, seq).map(u32::cast_signed),
        chunk_data: data_of(stored, data),
    })
}

fn word(stored: StoredTuple<'_>, attribute: Attribute) -> Option<u32> {
    let Attribute::Value(range) = attribute else {
        return None;
    };
    let bytes = stored.tuple.bytes().get(range)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn data_of(stored: StoredTuple<'_>, attribute: Attribute) -> Option<(Varlena<'_>, Range<usize>)> {
    let Attribute::Value(range) = attribute else {
        return None;
    };
    let bytes = stored.tuple.bytes().get(range.clone())?;
    Some((varlena::parse(bytes).ok()?.0, range))
}
