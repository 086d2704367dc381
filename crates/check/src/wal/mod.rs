//! Checks of WAL segments and the records in them.

pub(crate) mod breaks;

use pgclinic_format::registry;

use crate::check::ClusterCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        segment_missing::WalSegmentMissing,
        page_header::WalPageHeader,
        record_checksum::WalRecordChecksum,
        record_broken::WalRecordBroken,
        checkpoint_record_missing::CheckpointRecordMissing,
        timeline_history::TimelineHistory,
        older_wal::OlderWal,
        rows_in_wal::RowsInWal,
    ];
}
