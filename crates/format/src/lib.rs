//! Bytes of PostgreSQL's files as typed views, and back again.
//!
//! Nothing here reads a file, panics on any bytes, recurses on data or trusts a length: a view
//! promises what its `parse` says and nothing else, and every accessor that follows a pointer
//! answers with an `Option`.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod backup_label;
pub mod backup_manifest;
pub mod brin;
pub mod btree;
pub mod build;
pub mod calendar;
mod catalog_columns;
pub mod checksum;
pub mod control_file;
pub mod datum;
pub mod digest;
pub mod flags;
pub mod free_space_map;
pub mod front_bits;
pub mod gin;
pub mod gist;
mod guess;
pub mod hash;
pub mod hash_value;
pub mod heap_tuple;
pub mod incremental;
pub mod index_entries;
pub mod index_page;
pub mod index_tuple;
pub mod layout;
pub mod line_pointer;
pub mod oid;
pub mod order;
pub mod packing;
pub mod page;
pub mod pglz;
pub mod pglz_pack;
mod registry;
pub mod relation_map;
pub mod replication;
pub mod sequence;
pub mod slru;
pub mod spgist;
pub mod tar;
pub mod toast;
pub mod toast_chunk;
pub mod two_phase;
pub mod types;
pub mod value_hash;
pub mod varlena;
pub mod visibility_map;
pub mod wal;

mod bytes;

pub use attribute::{Attribute, AttributeFault, Attributes, ColumnLayout, PlainAttributes};
pub use control_file::ControlFile;
pub use heap_tuple::HeapTuple;
pub use index_tuple::IndexTuple;
pub use layout::Layout;
pub use line_pointer::{LinePointer, LpFlags};
pub use page::Page;
pub use relation_map::RelationMap;
pub use slru::StatusLog;
pub use two_phase::TwoPhase;
pub use types::{BlockNo, Fork, Lsn, MultiXactId, Oid, Xid};
pub use varlena::Varlena;
