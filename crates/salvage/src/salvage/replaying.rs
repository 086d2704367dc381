//! What the write-ahead log does to the files while they are salvaged.

use std::collections::BTreeMap;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::Replay;
use pgclinic_format::wal::FileNumber;

/// What it left undone.
pub(super) struct Replaying<'a> {
    /// The cluster before it was applied in memory.
    pub(super) as_it_lies: &'a Cluster,
    /// Changes that could not be applied, by file.
    pub(super) not_applied: &'a BTreeMap<FileNumber, u64>,
    /// What it does to files, where it was applied in memory: indexes and maps stay as they were.
    pub(super) replay: Option<&'a Replay>,
}
