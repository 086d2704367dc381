//! The register of experiments: each is one file here, named after its question, and one line below.

use pgclinic_format::registry;

use crate::experiment::Experiment;

registry! {
    /// Every experiment, in the order of `lab list`.
    pub static EXPERIMENTS: [Experiment] = [
        duplicate_inserts::DuplicateInserts,
        catalog_churn::CATALOG_CHURN,
        uuid_keys::UUID_KEYS,
        checksum_cost::CHECKSUM_COST,
        toast_compression::TOAST_COMPRESSION,
        lock_contention::LockContention,
        jit_memory::JitMemory,
        connection_memory::ConnectionMemory,
        async_io::AsyncIo,
        filesystem::Filesystem,
        large_object_dump::LargeObjectDump,
        analyze_prefetch::AnalyzePrefetch,
        oauth_login::OauthLogin,
    ];
}

/// The experiment of this name.
pub fn experiment_named(name: &str) -> Option<&'static dyn Experiment> {
    EXPERIMENTS
        .iter()
        .copied()
        .find(|experiment| experiment.name() == name)
}
