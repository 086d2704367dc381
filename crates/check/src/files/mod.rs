//! Checks of files and directories: which are there, and how long they are.

pub(crate) mod small_files;

use pgclinic_format::registry;

use crate::check::{ClusterCheck, DatabaseCheck};
use crate::relation_check::RelationCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        missing_directory::MissingDirectory,
        prepared_transaction_file::PreparedTransactionFile,
        lost_prepared_transaction::LostPreparedTransaction,
        replication_slot_file::ReplicationSlotFile,
        replication_origin_file::ReplicationOriginFile,
    ];
}

registry! {
    /// Checks of a database's files against its catalogs.
    pub static DATABASE_CHECKS: [DatabaseCheck] = [
        missing_database_directory::MissingDatabaseDirectory,
        version_file::VersionFile,
        empty_catalog::EmptyCatalog,
        relation_lost::RelationLost,
        missing_file::MissingFile,
        missing_segment::MissingSegment,
        short_segment::ShortSegment,
        extra_segment::ExtraSegment,
        partial_block::PartialBlock,
        empty_index::EmptyIndex,
        empty_sequence::EmptySequence,
        missing_init_fork::MissingInitFork,
        init_fork_content::InitForkContent,
        map_beyond_end::MapBeyondEnd,
        pages_beyond_end::PagesBeyondEnd,
        orphan_file::OrphanFile,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        file_truncated::FileTruncated,
    ];
}
