//! The values of a row: found in its bytes, unpacked, fetched from the TOAST relation.

mod cells;
pub(crate) mod chunk_index;
mod chunk_reader;
mod fault;
mod mending;

pub use cells::{Cells, Partial, Row};
pub(crate) use cells::{Taking, needed_by_row};
pub(crate) use chunk_index::{ChunkIndex, ChunkRun, RunCollector};
pub(crate) use chunk_reader::{ChunkReader, Found};
pub use fault::{Fault, FaultKind};
