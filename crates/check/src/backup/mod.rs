//! Checks of base backups.

pub(crate) mod files;

use pgclinic_format::registry;

use crate::check::ClusterCheck;

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        label::BackupLabelCheck,
        manifest::BackupManifestCheck,
        file_missing::BackupFileMissing,
        file_changed::BackupFileChanged,
        file_extra::BackupFileExtra,
    ];
}
