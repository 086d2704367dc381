//! Checks of the SLRU files of `pg_xact` and `pg_multixact`.

use pgclinic_format::registry;

use crate::check::ClusterCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        file_missing::StatusFileMissing,
        file_cut::StatusFileCut,
        file_zeroed::StatusFileZeroed,
        multixact_offset_impossible::MultixactOffsetImpossible,
        multixact_member_impossible::MultixactMemberImpossible,
    ];
}
