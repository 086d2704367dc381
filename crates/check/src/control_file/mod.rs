//! Checks of `pg_control`.

use pgclinic_format::registry;

use crate::check::ClusterCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        unreadable::ControlFileUnreadable,
        checksum::ControlFileChecksum,
        sense::ControlFileInconsistent,
    ];
}
