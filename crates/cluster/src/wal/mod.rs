//! The WAL of a cluster: its files, where recovery begins, and what it will do.

mod before_checkpoint;
mod block_history;
mod counters;
mod files;
mod foreign_control;
mod last_checkpoint;
mod logged_maps;
mod logged_tablespaces;
mod older_control;
mod pages;
mod recovery;
mod replay;
mod replayed;
mod row_changes;
mod status_writes;
mod survey;
mod timeline_switch;
mod touched;

pub(crate) use foreign_control::judge;
pub(crate) use last_checkpoint::{control_from_wal, is_segment_name};
pub(crate) use older_control::judge_age;

pub use block_history::{
    BlockAddress, BlockRecords, CopyOfCluster, Evidence, ExactPage, ForkEnd, FoundSegment,
    FoundSegments, NoWalOfFiles, NotProven, PageOrigin, RecoveredBlock, RecoveredBlocks,
    RecoveredStatusPage, SegmentPlace, SegmentSink, StatusAddress, WalDirectory, WalOfFiles,
    WantedPages, missing_segments, place_of_block, recover_blocks, recover_pages, wal_of_files,
};
pub use counters::WalCounters;
pub use files::{Timelines, WalFile, WalFiles, history_path};
pub use logged_maps::{LoggedMap, LoggedMaps};
pub use logged_tablespaces::{LoggedTablespace, LoggedTablespaces};
pub use pages::SegmentPages;
pub(crate) use recovery::is_signalled;
pub use recovery::{LabelState, Recovery, Start, StartKind};
pub use replay::{Replay, Stop};
pub use replayed::{ReplaySpace, Replayed, ReplayedSource};
pub use survey::{Chain, CheckpointState, HeadFault, WalSurvey};
pub use touched::ReplayEffect;
