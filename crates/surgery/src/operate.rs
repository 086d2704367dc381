//! The three things that are done to a cluster: carry out a patch, complete one, take one back.

use std::path::{Path, PathBuf};

use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::document::Tool;
use pgclinic_model::plan::Patch;

use crate::cluster_lock::ClusterLock;
use crate::cures::PageRun;
use crate::error::{Error, Result};
use crate::journal::{Journal, JournalFolder, SCHEMA, State};
use crate::resume::complete;
use crate::safety::{self, Consent};
use crate::storage::{Disk, Storage};
use crate::undo::take_back;
use crate::writer::carry_out;

/// A patch to be carried out.
#[derive(Clone, Debug)]
pub struct Operation<'a> {
    /// The data directory.
    pub pgdata: &'a Path,
    /// What is written.
    pub patch: &'a Patch,
    /// A folder for the journal, outside of the data directory; made if missing.
    pub journal: &'a Path,
    /// Why it may be written.
    pub consent: Consent,
    /// What it is, in words, for whoever reads the journal.
    pub what: &'a str,
    /// The time, as the caller wants it written.
    pub time: Option<&'a str>,
    /// What must be in the journal's directory, synced, before the first byte changes.
    pub beside: &'a [FileBeside],
    /// BLAKE3 of the control file for which the patch was made, in hexadecimal.
    pub control_file: Option<&'a str>,
}

/// A file beside a journal.
#[derive(Clone, PartialEq, Debug)]
pub struct FileBeside {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub content: Content,
}

impl FileBeside {
    /// A file with these bytes.
    pub fn of_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        FileBeside {
            name: name.into(),
            content: Content::Bytes(bytes),
        }
    }
}

/// What a file beside a journal holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Proven pages, which may be too many for memory.
    Pages(PageRun),
}

impl Content {
    /// Hands the bytes out in order.
    pub(crate) fn each(
        &self,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        match self {
            Content::Bytes(bytes) => take(bytes),
            Content::Pages(run) => run.each(take),
        }
    }
}

/// A patch that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The journal that takes it back.
    pub journal: PathBuf,
    /// How many changes were written.
    pub changes: u64,
}

/// A patch that was completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resumed {
    /// The data directory.
    pub pgdata: PathBuf,
    /// What the patch is for.
    pub what: String,
    /// How many changes were still to be written; 0 when all of them were there.
    pub changes: u64,
}

/// A patch that was taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undone {
    /// The data directory.
    pub pgdata: PathBuf,
    /// What the patch was for.
    pub what: String,
    /// How many changes were still to be taken back; 0 when it was undone before.
    pub changes: u64,
}

/// Journals and writes a patch, or leaves everything as it was. When it fails half way, the journal
/// takes back what was written, or [`resume`] completes it.
///
/// # Errors
/// When the cluster may not be written to, is not as the patch expects it, or a file cannot be
/// written.
pub fn apply(operation: &Operation<'_>) -> Result<Applied> {
    let pgdata = safety::resolve(operation.pgdata)?;
    let _lock = ClusterLock::take(&pgdata)?;
    safety::check_not_running(&pgdata)?;
    check_control_file(&pgdata, operation.control_file)?;
    safety::check_consent(&pgdata, operation.consent)?;
    safety::check_links(&pgdata, operation.patch)?;
    safety::check_outside(&pgdata, operation.journal)?;
    let folder = JournalFolder::new(operation.journal);
    let journal = Journal {
        schema: SCHEMA.into(),
        tool: Tool::this(),
        system_identifier: safety::system_identifier(&pgdata).map(|number| number.to_string()),
        pgdata,
        time: operation.time.map(str::to_owned),
        what: operation.what.into(),
        state: State::Planned,
        patch: operation.patch.clone(),
        kept: Vec::new(),
    };
    carry_out(&mut Disk, &folder, &journal, operation.beside)?;
    Ok(Applied {
        journal: folder.file(),
        changes: operation.patch.changes.len() as u64,
    })
}

/// Each start of a server writes the control file.
fn check_control_file(pgdata: &Path, wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let path = pgdata.join("global/pg_control");
    let mut bytes = vec![0; FILE_BYTES * 2];
    let read = match Disk.read_at(&path, 0, &mut bytes) {
        // The plan may be for a cluster that has none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        read => read.map_err(Error::io("read", &path))?,
    };
    bytes.truncate(read);
    if blake3::hash(&bytes).to_hex().as_str() == wanted {
        return Ok(());
    }
    Err(Error::OtherBasis {
        why: "the control file is not that of the plan: a server ran since".into(),
    })
}

/// Completes what a journal planned and did not finish; on its own cluster, or on `pgdata` where
/// that was moved to. Every change must be found as before, as after, or torn between the two.
///
/// # Errors
/// When the journal was undone, belongs to another cluster, or other bytes are found.
pub fn resume(journal: &Path, pgdata: Option<&Path>) -> Result<Resumed> {
    let folder = JournalFolder::new(journal);
    let read = folder.read(&Disk)?;
    let pgdata = safety::resolve(pgdata.unwrap_or(&read.pgdata))?;
    let _lock = ClusterLock::take(&pgdata)?;
    safety::check_not_running(&pgdata)?;
    safety::check_links(&pgdata, &read.patch)?;
    let changes = complete(&mut Disk, &folder, &pgdata)?;
    Ok(Resumed {
        pgdata,
        what: read.what,
        changes,
    })
}

/// Takes back what a journal, or the journal in a folder, tells; on its own cluster, or on `pgdata`
/// where that was moved to.
///
/// # Errors
/// When the journal belongs to another cluster, or neither the bytes from before nor those from
/// after are found.
pub fn undo(journal: &Path, pgdata: Option<&Path>) -> Result<Undone> {
    let folder = JournalFolder::new(journal);
    let read = folder.read(&Disk)?;
    let pgdata = safety::resolve(pgdata.unwrap_or(&read.pgdata))?;
    let _lock = ClusterLock::take(&pgdata)?;
    safety::check_not_running(&pgdata)?;
    safety::check_links(&pgdata, &read.patch)?;
    let changes = take_back(&mut Disk, &folder, &pgdata)?;
    Ok(Undone {
        pgdata,
        what: read.what,
        changes,
    })
}
