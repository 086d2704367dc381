//! A standby that follows the server under load: at work, and killed again and again.

use std::path::PathBuf;

use super::{Work, take};
use crate::postgres::{self, Server};

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
        // The primary's socket is in its data directory, and the backup holds the lock of it.
        postgres::remove_locks(&cluster)?;
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
        // Where nobody reaps processes, a dead one keeps its number, and its locks count as held.
        postgres::remove_locks(&self.cluster)?;
        self.server = work.tools.start(&self.cluster, &work.settings())?;
        Ok(complaints)
    }

    pub(super) fn stop(self) -> Result<(), String> {
        self.server.stop()
    }
}
