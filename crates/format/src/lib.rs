//! Bytes of PostgreSQL's files as typed views, and back again.
//!
//! Nothing here reads a file, panics on any bytes, recurses on data or trusts a length: a view
//! promises what its `parse` says and nothing else, and every accessor that follows a pointer
//! answers with an `Option`.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod build;
pub mod checksum;
pub mod control_file;
pub mod datum;
pub mod flags;
mod guess;
pub mod heap_tuple;
pub mod index_page;
pub mod layout;
pub mod line_pointer;
pub mod page;
pub mod pglz;
mod registry;
pub mod relation_map;
pub mod sequence;
pub mod toast;
pub mod types;
pub mod varlena;
pub mod visibility_map;

mod bytes;

pub use attribute::{Attribute, AttributeFault, Attributes, ColumnLayout};
pub use control_file::ControlFile;
pub use heap_tuple::HeapTuple;
pub use layout::Layout;
pub use line_pointer::{LinePointer, LpFlags};
pub use page::Page;
pub use relation_map::RelationMap;
pub use types::{BlockNo, Fork, Lsn, MultiXactId, Oid, Xid};
pub use varlena::Varlena;
