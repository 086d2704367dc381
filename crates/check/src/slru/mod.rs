//! Checks of the SLRU files of `pg_xact` and `pg_multixact`.

use pgclinic_format::registry;

use crate::check::ClusterCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        file_missing::SlruFileMissing,
        file_cut::SlruFileTruncated,
        file_zeroed::SlruFileZeroed,
        multixact_offset_out_of_range::MultixactOffsetOutOfRange,
        multixact_member_out_of_range::MultixactMemberOutOfRange,
    ];
}
