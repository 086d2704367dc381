//! The two things that are done to a cluster: carry out a patch, take one back.

use std::path::{Path, PathBuf};

use pgclinic_model::document::Tool;
use pgclinic_model::plan::Patch;

use crate::error::Result;
use crate::journal::{Journal, JournalFolder, SCHEMA, State};
use crate::safety::{self, Consent};
use crate::storage::Disk;
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
}

/// A patch that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The journal that takes it back.
    pub journal: PathBuf,
    /// How many changes were written.
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
/// takes back what was written.
pub fn apply(operation: &Operation<'_>) -> Result<Applied> {
    let pgdata = safety::resolve(operation.pgdata)?;
    safety::check_not_running(&pgdata)?;
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
    carry_out(&mut Disk, &folder, &journal)?;
    Ok(Applied {
        journal: folder.file(),
        changes: operation.patch.changes.len() as u64,
    })
}

/// Takes back what a journal, or the journal in a folder, tells; on its own cluster, or on `pgdata`
/// where that was moved to.
pub fn undo(journal: &Path, pgdata: Option<&Path>) -> Result<Undone> {
    let folder = JournalFolder::new(journal);
    let read = folder.read(&Disk)?;
    let pgdata = safety::resolve(pgdata.unwrap_or(&read.pgdata))?;
    safety::check_not_running(&pgdata)?;
    safety::check_links(&pgdata, &read.patch)?;
    let changes = take_back(&mut Disk, &folder, &pgdata)?;
    Ok(Undone {
        pgdata,
        what: read.what,
        changes,
    })
}
