//! Rows gathered into columns, and the columns written as Parquet or as an Arrow IPC file.
//!
//! Rows come as bytes of [`cells`], in any portions of whole rows; what is written comes out as
//! bytes. Nothing here reads or writes a file, and nothing outside knows the crates `arrow-*` and
//! `parquet`.
#![forbid(unsafe_code)]

pub mod cells;
mod gathering;
mod kind;
mod packer;

pub use kind::{ColumnKind, Field};
pub use packer::{ColumnarError, Layout, Packer, PackerPlan};
