//! Data checksums enabled and disabled in a cluster that was shut down.
//!
//! ```text
//! check (structure) + record of old and new checksums ─► journal ─► fields, read back ─► sync ─► control file
//! ```
//!
//! The control file is written last: up to then the cluster starts as before, whatever became of
//! the run. Truth: `src/bin/pg_checksums/pg_checksums.c`.

mod control;
mod fields;
mod journal;
mod record;
mod recorder;
mod survey;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use pgclinic_check::CheckOptions;
use pgclinic_cluster::Cluster;
use pgclinic_model::Progress;

use crate::cluster_lock::ClusterLock;
use crate::error::Result;
use crate::journal::State;
use crate::safety;
pub use control::ChecksumsState;
use control::StoppedControl;
use fields::{Direction, FieldPass, Written};
pub use journal::{ChecksumsJournal, ChecksumsJournalDirectory, KnownPage};
pub use survey::{PageOfFork, Survey, damage_elsewhere, damaged_pages, described};

/// Whether a run waits until its writes are on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// It does.
    Synced,
    /// It leaves that to the operating system: a crash of the machine may lose any of them.
    NotSynced,
}

/// How a change is carried out.
#[derive(Clone, Copy)]
pub struct ChecksumsRun<'a> {
    /// Threads that write.
    pub threads: NonZeroUsize,
    /// Whether it waits for the disk.
    pub durability: Durability,
    /// How pages are read.
    pub check: &'a CheckOptions,
    /// Who is told of bytes, and says when to stop.
    pub progress: &'a dyn Progress,
}

/// How a change ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumsEnd {
    /// Pages that were written.
    pub pages_written: u64,
    /// How it ended.
    pub ending: Ending,
}

/// How a change ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All of it was written and read back.
    Whole,
    /// Somebody stopped it; the control file is as it was.
    Interrupted,
}

/// A survey with its record, which is not yet a journal.
pub struct Prepared {
    /// What was found.
    pub survey: Survey,
    record: record::RecordWriter<io::BufWriter<std::fs::File>>,
}

/// A cluster on which no server runs and nobody else works, for as long as this lives.
#[derive(Debug)]
pub struct ClosedCluster {
    pgdata: PathBuf,
    _lock: ClusterLock,
}

impl ClosedCluster {
    /// Closes it to others.
    ///
    /// # Errors
    /// When a server runs on it, or another run works on it.
    pub fn new(pgdata: &Path) -> Result<Self> {
        let pgdata = safety::resolve(pgdata)?;
        safety::check_not_running(&pgdata)?;
        let lock = ClusterLock::take(&pgdata)?;
        Ok(ClosedCluster {
            pgdata,
            _lock: lock,
        })
    }

    /// What the control file says, of a cluster that was shut down in good order.
    ///
    /// # Errors
    /// When it was not, or its checksums are between on and off.
    pub fn checksums(&self) -> Result<ChecksumsState> {
        Ok(StoppedControl::read(&self.pgdata)?.checksums)
    }

    /// What enabling would write. Nothing is kept of it.
    ///
    /// # Errors
    /// When what pages need cannot be recorded.
    pub fn survey(&self, cluster: &Cluster, run: &ChecksumsRun<'_>) -> Result<Survey> {
        let surveyed = survey::surveyed(cluster, run.check, io::sink(), run.progress)?;
        Ok(surveyed.0)
    }

    /// The same, and keeps what pages have and need in the journal's directory.
    ///
    /// # Errors
    /// When the directory cannot be made, lies in the cluster, or is full.
    pub fn prepare(
        &self,
        cluster: &Cluster,
        directory: &ChecksumsJournalDirectory,
        run: &ChecksumsRun<'_>,
    ) -> Result<Prepared> {
        safety::check_outside(&self.pgdata, &directory.file())?;
        control::may_write(&self.pgdata)?;
        directory.create()?;
        let out = directory.record()?;
        let surveyed = survey::surveyed(cluster, run.check, out, run.progress);
        let (survey, record) = surveyed.inspect_err(|_| directory.remove_record())?;
        Ok(Prepared { survey, record })
    }

    /// Gives every page its checksum, then says so in the control file. When it fails or is stopped
    /// half way, [`ClosedCluster::resume`] goes on and [`ClosedCluster::undo`] takes it back.
    ///
    /// # Errors
    /// When the cluster may not be written to, or changed since it was prepared.
    pub fn enable(
        &self,
        prepared: Prepared,
        known: Vec<KnownPage>,
        directory: &ChecksumsJournalDirectory,
        run: &ChecksumsRun<'_>,
        time: Option<&str>,
    ) -> Result<ChecksumsEnd> {
        let control = StoppedControl::read(&self.pgdata)?;
        let after = control.with(ChecksumsState::On);
        let mut journal = ChecksumsJournal::new(&self.pgdata, &control, after);
        journal.time = time.map(str::to_owned);
        journal.pages = prepared.survey.pages_to_write;
        journal.known = known;
        directory.begin(prepared.record, &mut journal)?;
        self.resume(directory, run)
    }

    /// Goes on with a journal whose writing was stopped.
    ///
    /// # Errors
    /// When the cluster is not the journal's, or a server was started on it since.
    pub fn resume(
        &self,
        directory: &ChecksumsJournalDirectory,
        run: &ChecksumsRun<'_>,
    ) -> Result<ChecksumsEnd> {
        let mut journal = directory.read()?;
        if journal.state != State::Planned {
            return Err(directory.unusable("its work was done, or undone, before"));
        }
        let (before, after) = (&journal.control_before, &journal.control_after);
        if control::read(&self.pgdata)? != *before {
            return Err(control::moved("begin again: nothing needs to be undone"));
        }
        let written = self.write(directory, &journal, Direction::Forward, run)?;
        let ended = |ending| ChecksumsEnd {
            pages_written: written.pages,
            ending,
        };
        if !written.is_whole {
            return Ok(ended(Ending::Interrupted));
        }
        safety::check_not_running(&self.pgdata)?;
        control::replace(&self.pgdata, before, after, run.durability)?;
        journal.state = State::Applied;
        directory.write(&journal)?;
        Ok(ended(Ending::Whole))
    }

    /// Says in the control file that pages have no checksums.
    ///
    /// # Errors
    /// When the cluster may not be written to.
    pub fn disable(
        &self,
        directory: &ChecksumsJournalDirectory,
        durability: Durability,
        time: Option<&str>,
    ) -> Result<()> {
        let control = StoppedControl::read(&self.pgdata)?;
        let after = control.with(ChecksumsState::Off);
        safety::check_outside(&self.pgdata, &directory.file())?;
        control::may_write(&self.pgdata)?;
        directory.create()?;
        let mut journal = ChecksumsJournal::new(&self.pgdata, &control, after);
        journal.time = time.map(str::to_owned);
        let record = record::RecordWriter::new(directory.record()?);
        directory.begin(record, &mut journal)?;
        let (before, after) = (&journal.control_before, &journal.control_after);
        control::replace(&self.pgdata, before, after, durability)?;
        journal.state = State::Applied;
        directory.write(&journal)
    }

    /// Takes a change back, wherever it ended: the control file first, then the checksums that
    /// pages carried before. Nothing is written before every page was found to carry one of the
    /// two.
    ///
    /// # Errors
    /// When the cluster is not the journal's, or a server was started on it since.
    pub fn undo(
        &self,
        directory: &ChecksumsJournalDirectory,
        run: &ChecksumsRun<'_>,
    ) -> Result<ChecksumsEnd> {
        let mut journal = directory.read()?;
        let now = control::read(&self.pgdata)?;
        let (before, after) = (&journal.control_before, &journal.control_after);
        if now != *before && now != *after {
            return Err(control::moved("use --disable or --enable instead"));
        }
        self.pass(directory, &journal, Direction::Back, run)
            .compare()?;
        control::replace(&self.pgdata, &now, before, run.durability)?;
        let written = self.write(directory, &journal, Direction::Back, run)?;
        let mut ending = Ending::Interrupted;
        if written.is_whole {
            journal.state = State::Undone;
            directory.write(&journal)?;
            ending = Ending::Whole;
        }
        Ok(ChecksumsEnd {
            pages_written: written.pages,
            ending,
        })
    }

    fn pass<'a>(
        &'a self,
        directory: &'a ChecksumsJournalDirectory,
        journal: &'a ChecksumsJournal,
        direction: Direction,
        run: &ChecksumsRun<'a>,
    ) -> FieldPass<'a> {
        FieldPass {
            directory,
            journal,
            pgdata: &self.pgdata,
            direction,
            threads: run.threads,
            progress: run.progress,
        }
    }

    /// Writes the fields of the record and makes them lasting.
    fn write(
        &self,
        directory: &ChecksumsJournalDirectory,
        journal: &ChecksumsJournal,
        direction: Direction,
        run: &ChecksumsRun<'_>,
    ) -> Result<Written> {
        let pass = self.pass(directory, journal, direction, run);
        let written = pass.write()?;
        if run.durability == Durability::Synced {
            pass.sync(&written.files)?;
        }
        Ok(written)
    }
}

/// The directory holds a journal of checksums, or is its file.
pub fn is_checksums_journal(path: &Path) -> bool {
    ChecksumsJournalDirectory::new(path).is_there()
}

impl Prepared {
    /// Gives up what was recorded.
    pub fn discard(self, directory: &ChecksumsJournalDirectory) {
        drop(self.record);
        directory.remove_record();
    }
}
