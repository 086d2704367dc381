//! Names and meaning for the bytes of a cluster, all read from its files.
//!
//! [`Cluster::open`] reads version, control file and databases; [`Cluster::catalog`] reads one
//! database's relations, columns and types; [`Cluster::files`] lists what lies on disk. What
//! cannot be read becomes a [`Trouble`], and the rest is used.
#![forbid(unsafe_code)]

mod access_methods;
mod block_set;
mod btree_leaves;
mod build;
mod catalog;
mod catalog_places;
mod chain;
mod charset;
mod cluster;
mod collation;
mod collator;
mod columns;
mod error;
mod file_name;
mod files;
mod heap_scan;
mod index;
mod lost_rows;
mod manifest;
mod multixact;
mod order;
mod page_method;
mod part;
mod pieces;
mod places;
mod read_again;
mod relation;
mod row_places;
pub mod selected;
mod settings;
pub mod status;
mod target;
mod toast_index;
mod toast_reader;
mod transaction_log;
mod types;
mod visibility;
pub mod wal;
mod witness;
mod words;

pub use block_set::BlockSet;
pub use btree_leaves::{LeafWalk, Leaves, each_leaf};
pub use build::Build;
pub use catalog::{Catalog, SequenceBounds};
pub use chain::Link;
pub use charset::{Charset, Euc};
pub use cluster::{CHECKPOINT_BYTES, Cluster, ControlState, Database, Recovered};
pub use collation::{Collation, CollationProvider, CollationVersion, MachineCollations};
pub use collator::Collator;
pub use error::{OpenError, Trouble};
pub use file_name::{RelationFileName, fork_path};
pub use files::{ForkFiles, Home, Segment, read_block};
pub use heap_scan::{HeapScan, RawRow};
pub use index::{Index, OpClass};
pub use manifest::{MANIFEST, MANIFEST_BYTES, ManifestState};
pub use multixact::{Member, MemberStatus, MultiXacts};
pub use pieces::{Piece, Pieces};
pub use places::{file_place, fork_place, kind_of};
pub use relation::{Column, ForeignMethod, Generated, Persistence, RelKind, Relation, quoted};
pub use status::StatusFile;
pub use target::target_of;
pub use toast_index::{ChunkIndex, ChunkRun, RunCollector, RunGatherer};
pub use toast_reader::{FoundChunks, PageRows, ToastReader, named_rows};
pub use transaction_log::{LogReader, TransactionLog, XactStatus};
pub use visibility::{Death, Doubt, RowState, Stamp, Visibility};
pub use witness::{LostColumn, LostDatabase, LostRelation};
pub use words::Words;
