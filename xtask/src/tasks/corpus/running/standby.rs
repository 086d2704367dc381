//! A standby that follows the server under load: at work, and killed again and again.

use std::path::{Path, PathBuf};

use super::{Work, take};
use crate::postgres::Server;
use crate::shell::at;

const AT_WORK: &str = "standby";
const KILLED: &str = "standby, killed";

pub(super) struct Standby<'w> {
    work: &'w Work<'w>,
    cluster: PathBuf,
    server: Server<'w>,
}

impl<'w> Standby<'w> {
    pub(super) fn of(work: &'w Work<'w>, primary: &Server<'_>) -> Result<Self, String> {
        let cluster = work.scratch.path().join("standby");
        take(primary, &cluster, &["-Fp", "-R"])?;
        // The primary's socket lies in its data directory, and the lock of it was taken along.
        removed(&cluster.join(".s.PGSQL.5432.lock"))?;
        let server = work.tools.start(&cluster, &work.settings())?;
        Ok(Self {
            work,
            cluster,
            server,
        })
    }

    /// At work, beside its primary, and after the end of its machine; then it goes on.
    pub(super) fn checked(&mut self) -> Result<usize, String> {
        let work = self.work;
        let mut complaints = work.silent_at_all_levels(AT_WORK, &[&self.cluster])?;
        complaints += work.explained(AT_WORK, &work.cluster(), &self.cluster)?;
        self.server.kill()?;
        complaints += work.silent_at_all_levels(KILLED, &[&self.cluster])?;
        // Where nobody buries processes, the number of a dead one stays taken.
        removed(&self.cluster.join("postmaster.pid"))?;
        self.server = work.tools.start(&self.cluster, &work.settings())?;
        Ok(complaints)
    }

    pub(super) fn stop(self) -> Result<(), String> {
        self.server.stop()
    }
}

fn removed(path: &Path) -> Result<(), String> {
    std::fs::remove_file(path).map_err(at(path))
}
