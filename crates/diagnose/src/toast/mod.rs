//! Long values both ways: from the rows that point to them, and from the chunks that hold them.
//!
//! Chunks that follow each other in the file are one run, so that nearly every value is one record;
//! runs and pointers are sorted by the value's number, on disk where memory does not reach, and met.

mod pointers;
mod runs;
mod value;

pub(crate) use pointers::{Pointer, collect_pointers};
pub(crate) use runs::{Run, Runs, collect_runs};
pub(crate) use value::{Fault, fault_of, for_each_piece};
