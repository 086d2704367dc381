//! Rows out of pages: what a table holds, read from its files alone, and written where a person can
//! use it.
//!
//! `shape` says what a table looks like, `visible` which of its row versions count, `values` finds
//! and unpacks what a row holds, `forms` write it, and `salvage` does all of it for a cluster, with
//! an account.
#![forbid(unsafe_code)]

mod carve;
mod file_names;
pub mod formats;
mod live;
mod readable;
mod salvage;
pub mod schema;
mod sequence_page;
mod shape;
mod stored_types;
mod text_settings;
mod texts;
mod values;
mod visible;

pub use file_names::{FileNames, encoded};
pub use live::{ServerSource, salvage_live};
pub use salvage::{
    BareTable, BlockRows, Destination, Durability, Encoding, LOCK_WAIT, Rows, SalvageError,
    SalvageOptions, Stream, end_of_load, end_of_work, guess_cluster, guess_columns, rows_of_block,
    salvage, salvage_file,
};
pub use shape::{
    Column, ColumnChoice, ColumnEncoding, MainForks, Missing, Origin, SystemColumn, Table,
};
pub use text_settings::{TextSettings, TextStyle};
pub use texts::Texts;
pub use values::{Fault, FaultKind, Partial, Row, RowValues};
pub use visible::VersionFate;
