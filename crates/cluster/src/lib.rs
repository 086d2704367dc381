//! Names and meaning for the bytes of a cluster, all read from its files.
//!
//! [`Cluster::open`] reads version, control file and databases; [`Cluster::catalog`] reads one
//! database's relations, columns and types; [`Cluster::files`] lists what lies on disk. What
//! cannot be read becomes a [`Trouble`], and the rest is used.
#![forbid(unsafe_code)]

mod catalog;
mod cluster;
mod columns;
mod error;
mod file_name;
mod files;
mod heap_rows;
mod multixact;
mod relation;
mod transaction_log;
mod types;
mod visibility;

pub use catalog::Catalog;
pub use cluster::{Build, Cluster, ControlState, Database};
pub use error::{OpenError, Trouble};
pub use file_name::{RelationFileName, fork_path};
pub use files::{ForkFiles, Home, Segment};
pub use heap_rows::{HeapRows, RawRow};
pub use multixact::{Member, MemberStatus, MultiXacts};
pub use relation::{Column, Index, Persistence, RelKind, Relation};
pub use transaction_log::{TransactionLog, XactStatus};
pub use visibility::{RowState, row_state};
