//! The healthy cluster that every copy is made from.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_check::walker::CheckOptions;
use pgclinic_check::{check_cluster, level_of};
use pgclinic_cluster::Cluster;
use pgclinic_model::{CheckDocument, Level, Progress, Selection};
use pgclinic_servers::{
    Checksums, FillOptions, InitOptions, Installation, RunAs, Scratch, Server, StartOptions,
    StopMode, fill, initdb,
};
use pgclinic_source::DataDirectory;
use pgclinic_spill::MemoryPlan;

use crate::exit::Failure;

/// A filled cluster that was shut down, in a folder of its own.
pub(crate) struct Master {
    pub(crate) installation: Installation,
    pub(crate) run_as: RunAs,
    pub(crate) pgdata: PathBuf,
    pub(crate) scratch: Scratch,
}

/// What to make.
pub(crate) struct MasterOptions {
    pub(crate) seed: u64,
    pub(crate) large: bool,
}

impl Master {
    /// Makes and fills a cluster with data checksums.
    pub(crate) fn make(
        installation: Installation,
        run_as: RunAs,
        options: &MasterOptions,
    ) -> Result<Self, Failure> {
        let scratch = Scratch::new(&run_as, None)?;
        let folder = scratch.folder("master")?;
        let pgdata = folder.join("data");
        let init = InitOptions {
            checksums: Checksums::On,
            wal_segsize_mb: Some(1),
            ..InitOptions::default()
        };
        initdb(&installation, &run_as, &pgdata, &init)?;
        let start = StartOptions::default()
            .with("wal_level", "minimal")
            .with("max_wal_senders", "0");
        let mut server = Server::start(&installation, &run_as, &pgdata, &start)?;
        fill(
            &server,
            FillOptions {
                large: options.large,
                seed: options.seed,
            },
        )?;
        server.stop(StopMode::Fast)?;
        Ok(Master {
            installation,
            run_as,
            pgdata,
            scratch,
        })
    }

    /// Starts the server on a copy, as it stands.
    pub(crate) fn start(&self, pgdata: &Path) -> pgclinic_servers::Result<Server> {
        Server::start(
            &self.installation,
            &self.run_as,
            pgdata,
            &StartOptions::default(),
        )
    }
}

/// Opens a cluster of the drill.
pub(crate) fn open(pgdata: &Path) -> Result<Cluster, Failure> {
    Ok(Cluster::open(Arc::new(DataDirectory::open(pgdata)?))?)
}

/// Checks a cluster of the drill on one thread, as deep as it goes.
pub(crate) fn check(pgdata: &Path, evidence: usize) -> Result<CheckDocument, Failure> {
    check_at(Level::Full, pgdata, evidence)
}

/// The lowest level at which every rule that must fire is asked for, `structure` at least.
pub(crate) fn level_for(must: &[&str]) -> Level {
    let levels = must.iter().filter_map(|rule| level_of(rule));
    levels.max().unwrap_or(Level::Full).max(Level::Structure)
}

/// Checks a cluster of the drill on one thread.
pub(crate) fn check_at(
    level: Level,
    pgdata: &Path,
    evidence: usize,
) -> Result<CheckDocument, Failure> {
    let options = CheckOptions {
        level,
        threads: NonZeroUsize::MIN,
        evidence,
        selection: Selection::default(),
        spec: "drill".into(),
        memory: MemoryPlan::default(),
        spill_folder: pgdata.parent().unwrap_or(pgdata).to_owned(),
        since: None,
    };
    Ok(check_cluster(&open(pgdata)?, &options, &Unwatched))
}

/// No bar, no interruption: a drill looks between two steps.
pub(crate) struct Unwatched;

impl Progress for Unwatched {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}
