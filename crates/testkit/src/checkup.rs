//! A checkup without a command line.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::Cluster;
use pgclinic_model::{CheckDocument, Level, Progress, Selection};
use pgclinic_source::{DataDirectory, Source};
use pgclinic_spill::MemoryPlan;

/// Nobody watches the progress, and nobody interrupts.
pub struct Quiet;

impl Progress for Quiet {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The bytes of a data directory.
pub fn directory(pgdata: &Path) -> Arc<dyn Source> {
    Arc::new(DataDirectory::open(pgdata).expect("a directory"))
}

/// The cluster in a folder.
pub fn open(pgdata: &Path) -> Cluster {
    Cluster::open(directory(pgdata)).expect("a cluster")
}

/// What a checkup of all of a cluster says.
pub fn checked(cluster: &Cluster, level: Level) -> CheckDocument {
    checked_only(cluster, level, Selection::default())
}

/// What a checkup of some of a cluster says.
pub fn checked_only(cluster: &Cluster, level: Level, selection: Selection) -> CheckDocument {
    let options = CheckOptions {
        level,
        threads: NonZeroUsize::MIN.saturating_add(1),
        evidence: 0,
        selection,
        spec: String::new(),
        memory: MemoryPlan::default(),
        spill_folder: std::env::temp_dir(),
        since: None,
    };
    check_cluster(cluster, &options, &Quiet)
}
