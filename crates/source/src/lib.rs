//! Where bytes come from: read-only, blocking, random access.
//!
//! A [`Source`] hides whether a cluster lies in a folder, in memory, or under injuries that never
//! touched a file. Paths are relative to the data directory, separated by `/`, without a leading
//! slash; `""` is the root. What a source means by its bytes is decided above, in the cluster
//! crate.
#![forbid(unsafe_code)]

mod access;
mod chain;
pub mod conformance;
mod data_directory;
mod decompressed;
mod error;
mod folder;
mod footprints;
mod limit;
mod mark;
mod memory;
mod open;
mod open_files;
mod overlay;
mod path;
mod single_file;
mod source;
mod spec;
mod streamed_backup;
pub mod tar;

pub use access::{AccessLog, FAILURES_MAX, Presence};
pub use chain::{BackupChain, ChainShape};
pub use data_directory::DataDirectory;
pub use decompressed::decompressed;
pub use error::{Result, SourceError, SourceErrorKind};
pub use limit::{Clock, Limit, Pace};
pub use mark::{FileMark, Settled, marks_of};
pub use memory::Memory;
pub use overlay::Overlay;
pub use path::check as check_path;
pub use single_file::SingleFile;
pub use source::{Entry, EntryKind, Range, Source, read_all, read_exact_at};
pub use spec::{OverlayPatch, SourceSpec};
pub use streamed_backup::StreamedBackup;
pub use tar::TarBackup;
