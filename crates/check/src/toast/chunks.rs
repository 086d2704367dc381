//! The chunks of a page of a TOAST relation, as checks see them.

use std::fmt;
use std::ops::Range;

use pgclinic_format::toast_chunk::{CHUNK_COLUMNS, ToastChunk};
use pgclinic_format::{Oid, Page, Varlena};

use crate::heap::tuples::{StoredTuple, tuples};

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
        && usize::from(tuple.attribute_count()) <= CHUNK_COLUMNS.len();
    let chunk = header_is_right.then(|| ToastChunk::parse(tuple))??;
    Some(Chunk {
        stored,
        chunk_id: chunk.chunk_id,
        chunk_seq: chunk.chunk_seq,
        chunk_data: chunk.chunk_data,
    })
}
