//! The values of a row: found in its bytes, unpacked, fetched from the TOAST relation.

mod cells;
mod chunk_rows;
mod fault;
mod mending;

pub use cells::{Partial, Row, RowValues};
pub(crate) use cells::{Taking, needed_by_row, writes_all};
pub(crate) use chunk_rows::{chunk_rows, rank};
pub use fault::{Fault, FaultKind};
