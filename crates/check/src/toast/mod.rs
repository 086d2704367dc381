//! Long values both ways: from the rows that point to them, and from the chunks that hold them.
//!
//! Chunks that follow each other in the file are one run, so that nearly every value is one record;
//! runs and pointers are sorted by the value's number, on disk where memory does not reach, and
//! met.

pub(crate) mod chunks;
mod external_text;
mod orphans;
mod pointers;
mod runs;
mod value;

pub(crate) use pointers::{Pointer, collect_pointers};
pub(crate) use runs::{Run, Runs, collect_runs};
pub(crate) use value::{Fault, fault_of, for_each_piece};

use pgclinic_format::registry;

use crate::check::PageCheck;
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        toasted_toast_chunk::ToastedToastChunk,
        chunk_number_out_of_range::ChunkNumberOutOfRange,
        chunk_size_out_of_range::ChunkSizeOutOfRange,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        values::ToastValues,
    ];
}
