//! Names and meaning for the bytes of a cluster, all read from its files.
//!
//! [`Cluster::open`] takes [`OpenOptions`], or a source alone, and reads version, control file and
//! databases; [`Cluster::catalog`] reads one database's relations, columns and types;
//! [`Cluster::files`] lists what lies on disk. What cannot be read becomes a [`ReadGap`], and the
//! rest is used. In what [`State`] the files are decides what of them may be compared:
//! [`Cluster::may_compare`].
#![forbid(unsafe_code)]

mod access_methods;
mod attached_columns;
mod backup;
mod block_set;
mod btree_leaves;
mod build;
mod catalog;
mod catalog_encoding;
mod catalog_indexes;
mod catalog_places;
mod chain;
mod charset;
mod cluster;
mod collation;
mod collation_rows;
mod collator;
mod columns;
mod comparison;
mod context;
mod contradictions;
mod control_state;
mod database;
mod databases;
mod error;
mod file_name;
mod files;
mod heap_scan;
mod index;
mod index_rows;
pub mod inventory;
mod leftover_databases;
mod live_limits;
mod logged_blocks;
mod lost_label;
mod lost_rows;
mod major;
mod map_page;
mod map_positions;
mod mentioned_relations;
mod multixact;
mod open;
mod order;
mod page_method;
mod page_place;
mod pieces;
mod places;
mod prepared;
mod read_again;
mod read_windows;
mod refresh;
mod relation;
mod row_places;
mod rows_in_wal;
pub mod selected;
mod settings;
mod state;
pub mod status;
mod target;
mod toast_blocks;
mod toast_index;
mod toast_reader;
mod torn_pages;
mod transaction_log;
mod truncated;
mod types;
pub mod unknown_storage;
pub mod unreachable;
mod visibility;
pub mod wal;
mod witness;

pub use backup::{MANIFEST, MANIFEST_BYTES, ManifestState, file_sum, file_sums};
pub use block_set::BlockSet;
pub use btree_leaves::{LeafWalk, Leaves, SilentPages, each_leaf, each_row_named};
pub use build::Build;
pub use catalog::{Catalog, SequenceBounds};
pub use catalog_encoding::CatalogEncoding;
pub use charset::{Charset, Euc};
pub use cluster::{CHECKPOINT_BYTES, Cluster, Link};
pub use collation::{Collation, CollationProvider, CollationVersion, MachineCollations};
pub use collator::Collator;
pub use comparison::Comparison;
pub use context::{DatabaseContext, ForkContext};
pub use contradictions::Contradiction;
pub use control_state::ControlState;
pub use database::{Database, LostDatabase};
pub use error::{OpenError, ReadGap};
pub use file_name::{RelationFileName, fork_path};
pub use files::{DatabaseDirectory, ForkFiles, MissingBlocks, Segment, read_block};
pub use heap_scan::{HeapScan, RawRow};
pub use index::{Index, OpClass};
pub use live_limits::{LIVE_LIMITS, LiveLimits};
pub use map_page::{MarkedBeyond, map_page};
pub use map_positions::MapPositions;
pub use multixact::{Member, MemberStatus, MultiXacts};
pub use open::OpenOptions;
pub use page_place::{Misplaced, block_by_rows, misplaced};
pub use pieces::{Piece, Pieces};
pub use places::{file_place, fork_place, kind_of};
pub use relation::{Column, ForeignMethod, Generated, Persistence, RelKind, Relation, quoted};
pub use rows_in_wal::OutdatedBlock;
pub use state::{
    DatabasesOfServer, LookAtDatabases, LooksAtDatabases, Recovered, ReplayInMemory, State,
    StreamedFiles,
};
pub use status::StatusFile;
pub use target::target_of;
pub use toast_blocks::{BlocksOfValues, blocks_of_values};
pub use toast_index::{ChunkIndex, ChunkRun, RunCollector, RunGatherer};
pub use toast_reader::{ChunkDoubts, FoundChunks, PageRows, ToastReader, named_rows};
pub use torn_pages::{PageWaits, Reread, reread_page};
pub use transaction_log::{LogReader, TransactionLog, XactStatus};
pub use visibility::{Death, Doubt, RowState, Stamp, Visibility};
pub use witness::{
    KILLED_BY_HAND_MAX, LostColumn, LostKeys, LostRelation, LostType, rows_with_values,
};
