//! Before a data directory is written to, or copied as that of a stopped server: nobody else may be
//! at work on its files. A server in a container or on another host is not seen through
//! `postmaster.pid`, but by what it writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgclinic_cluster::Cluster;
use pgclinic_source::DataDirectory;

use crate::env::sleep_unless;
use crate::exit::Failure;
use crate::target;
use crate::undetected_server::Watch;

/// How long files are watched beside which a `postmaster.pid` was left. A server that does anything
/// writes to its log sooner.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const STEP: Duration = Duration::from_millis(100);

/// Files that stood still while they were watched, and an eye on them.
pub(crate) struct Stillness {
    pgdata: PathBuf,
    watched: Option<(Cluster, Watch)>,
}

impl Stillness {
    /// Looks; where a `postmaster.pid` was left, for some seconds, which `say` is told of. A server
    /// that writes meanwhile is a failure. One whose process is seen is left to who refuses that,
    /// and so are files of which no cluster can be made: no server works on them.
    pub(crate) fn of(
        pgdata: &Path,
        interrupted: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let is_seen = target::running_server(pgdata).is_some();
        let cluster = (!is_seen).then(|| opened(pgdata)).flatten();
        let stillness = Stillness {
            pgdata: pgdata.to_owned(),
            watched: cluster.map(|cluster| {
                let watch = Watch::begin(&cluster);
                (cluster, watch)
            }),
        };
        let is_left = pgdata.join("postmaster.pid").symlink_metadata().is_ok();
        if stillness.watched.is_some() && is_left {
            say(&format!(
                "pgclinic: {} names no process that is seen here: for {} s the files are watched, whether a server elsewhere writes to them",
                pgdata.join("postmaster.pid").display(),
                PATIENCE.as_secs()
            ));
            stillness.wait(interrupted)?;
        }
        Ok(stillness)
    }

    fn wait(&self, interrupted: &AtomicBool) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            sleep_unless(interrupted, STEP);
            if interrupted.load(Ordering::Relaxed) {
                return Err(Failure::new("interrupted; nothing was written"));
            }
            self.holds()?;
        }
        Ok(())
    }

    /// Nobody has written to them up to now.
    pub(crate) fn holds(&self) -> Result<(), Failure> {
        let seen = self.watched.as_ref();
        match seen.and_then(|(cluster, watch)| watch.seen(cluster)) {
            Some(server) => Err(Failure::new(format!(
                "{}: {}. Stop it first, or work on a backup; nothing was written",
                self.pgdata.display(),
                server.note()
            ))),
            None => Ok(()),
        }
    }
}

/// As the cluster of a stopped server, if it is one.
fn opened(pgdata: &Path) -> Option<Cluster> {
    let source = DataDirectory::open(pgdata).ok()?;
    Cluster::open(Arc::new(source)).ok()
}
