//! Checks of catalogs, their relation maps and what their rows say of each other.

pub(crate) mod claims;
pub(crate) mod oid_set;
pub(crate) mod references;
pub(crate) mod rows;

use pgclinic_format::registry;

use crate::check::{ClusterCheck, DatabaseCheck};

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        relation_map_unreadable::RelationMapUnreadable,
        relation_map_checksum::RelationMapChecksum,
        relation_map_inconsistent::RelationMapInconsistent,
        database_lost::DatabaseLost,
        orphan_database_directory::OrphanDatabaseDirectory,
    ];
}

registry! {
    /// Checks of a database's files against its catalogs.
    pub static DATABASE_CHECKS: [DatabaseCheck] = [
        collation_version_changed::CollationVersionChanged,
        catalog_row_contradictory::CatalogRowContradictory,
        catalog_attributes_missing::CatalogAttributesMissing,
        catalog_key_duplicate::CatalogKeyDuplicate,
        catalog_reference_missing::CatalogReferenceMissing,
        catalog_rows_disagree::CatalogRowsDisagree,
    ];
}
