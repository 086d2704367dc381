//! What a person names: a folder of `lab run`, or one of `lab merge` with a folder for each
//! machine.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Recorded;
use crate::cell::RunResult;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::runner::{RunFolder, Unreadable};

/// Below a folder of `lab merge`: a folder for each machine.
pub(super) const MACHINES: &str = "machines";

/// The folder of one machine that was opened, with what it holds.
#[derive(Debug)]
pub struct Source {
    name: String,
    folder: RunFolder,
    plan: Plan,
    results: Vec<RunResult>,
    unreadable: Vec<Unreadable>,
}

impl Source {
    /// The one folder of `lab run`, or those of all machines that `lab merge` has put into one.
    ///
    /// # Errors
    /// When there is no plan, or one that cannot be read.
    pub fn open(path: &Path) -> Result<Vec<Self>> {
        if is_merged(path)? {
            machines(path)?.iter().map(|path| Self::one(path)).collect()
        } else {
            Ok(vec![Self::one(path)?])
        }
    }

    fn one(path: &Path) -> Result<Self> {
        let folder = RunFolder::open(path)?;
        let (results, unreadable) = folder.results()?;
        Ok(Self {
            name: path.display().to_string(),
            plan: folder.plan_as_run(),
            folder,
            results,
            unreadable,
        })
    }

    /// The folder itself.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The plan as it was carried out, with what can be read of its results and what cannot.
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded {
            name: &self.name,
            place: &self.name,
            plan: &self.plan,
            results: &self.results,
            unreadable: &self.unreadable,
        }
    }
}

/// Whether this is a folder of `lab merge`: it has no plan of its own, and machines.
///
/// # Errors
/// When its machines cannot be listed.
pub fn is_merged(path: &Path) -> Result<bool> {
    Ok(!RunFolder::is_at(path) && !machines(path)?.is_empty())
}

/// The folders of the machines, by name.
fn machines(path: &Path) -> Result<Vec<PathBuf>> {
    let all = path.join(MACHINES);
    let entries = match fs::read_dir(&all) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        read => read.map_err(Error::io("list", &all))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", &all))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
