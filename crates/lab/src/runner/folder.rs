//! The folder of an experiment: plan, journal, and one folder a run that is there whole or not at
//! all.

use std::fmt;
use std::fs::{DirEntry, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cell::{Cell, RunResult};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::runner::journal::{self, Entry};
use crate::runner::overrun;
use crate::runner::site::KeptSite;
use crate::servers_of_arms::{SiteOptions, refuse_data_directory};

const PLAN: &str = "plan.json";
const SITE: &str = "site.json";
const JOURNAL: &str = "journal.jsonl";
const LOCK: &str = "lock";
const RUNS: &str = "runs";
const RESULT: &str = "run.json";
const PART: &str = ".part-";

/// A folder with a plan.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    plan: Plan,
    /// There was no such folder before.
    is_new: bool,
}

/// A run's folder whose result cannot be read: somebody changed it, or the disk did. Shown as the
/// sentence of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its `run.json`.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "{path} cannot be read and does not count: {}", self.why)
    }
}

impl RunFolder {
    /// Whether there is a plan in it.
    pub(crate) fn is_at(path: &Path) -> bool {
        path.join(PLAN).exists()
    }

    /// Begins in a new or empty folder, or goes on in one that holds the same plan.
    pub fn create(path: &Path, plan: Plan) -> Result<Self> {
        refuse_data_directory(path)?;
        if Self::is_at(path) {
            let found = Self::open(path)?;
            return if found.plan.hash == plan.hash {
                Ok(found)
            } else {
                Err(Error::Refused(format!(
                    "{} holds the plan {} and not {}: name another directory with --into, or resume that one",
                    path.display(),
                    found.plan.hash,
                    plan.hash
                )))
            };
        }
        let mut entries = std::fs::read_dir(path).into_iter().flatten();
        let is_left = |entry: DirEntry| is_from_a_killed_start(&entry);
        if path.is_file() || entries.any(|entry| !entry.is_ok_and(is_left)) {
            return Err(Error::Refused(format!(
                "{} is not empty and holds no experiment: name a new directory with --into",
                path.display()
            )));
        }
        let is_new = !path.exists();
        let runs = path.join(RUNS);
        std::fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
        let text = serde_json::to_vec_pretty(&plan).expect("plain data can be written as JSON");
        write_whole(path, PLAN, &text)?;
        let path = path.to_path_buf();
        Ok(Self { path, plan, is_new })
    }

    /// Opens a folder that holds a plan.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join(PLAN);
        let bytes = std::fs::read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Refused(format!(
                "{} holds no experiment: there is no {PLAN} in it",
                path.display()
            )),
            _ => Error::io("read", &file)(error),
        })?;
        let plan = Plan::from_json(&bytes)?;
        Ok(Self {
            path: path.to_path_buf(),
            plan,
            is_new: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is asked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The servers and places that this folder was begun with; `None` before its first run.
    pub fn kept_site(&self) -> Result<Option<KeptSite>> {
        let path = self.path.join(SITE);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io("read", &path))?,
        };
        let kept = serde_json::from_slice(&bytes)
            .map_err(|error| Error::Refused(format!("{} cannot be read: {error}", path.display())));
        kept.map(Some)
    }

    /// Where to go on: as this folder was begun, or as it is said now where nothing was begun.
    ///
    /// # Errors
    /// When a word that is said now contradicts the folder, with both.
    pub fn site(&self, said: &SiteOptions) -> Result<SiteOptions> {
        match self.kept_site()? {
            Some(kept) => kept.with(said, &self.path),
            None => Ok(said.clone()),
        }
    }

    /// Keeps the servers and places of the first run for all that follow.
    pub(super) fn keep_site(&self, options: &SiteOptions) -> Result<()> {
        if self.path.join(SITE).exists() {
            return Ok(());
        }
        let kept = KeptSite::of(options)?;
        let text = serde_json::to_vec_pretty(&kept).expect("plain data can be written as JSON");
        write_whole(&self.path, SITE, &text)
    }

    /// The plan as it was carried out: without the blocks that the budget did not hold.
    pub fn plan_as_run(&self) -> Plan {
        match overrun::dropped(&self.history()) {
            Some((first, why)) => self.plan.without_blocks_from(first, why),
            None => self.plan.clone(),
        }
    }

    /// The folder of a run, whether it is there or not.
    pub fn run_folder(&self, id: &str) -> PathBuf {
        self.path.join(RUNS).join(id)
    }

    /// Results in the order of the plan, and those that cannot be read. A run in flight is neither.
    pub fn results(&self) -> Result<(Vec<RunResult>, Vec<Unreadable>)> {
        let (mut results, mut unreadable) = (Vec::new(), Vec::new());
        for cell in &self.plan.cells {
            let path = self.run_folder(&cell.id).join(RESULT);
            if !path.parent().is_some_and(Path::exists) {
                continue;
            }
            match read_result(&path, cell) {
                Ok(result) => results.push(result),
                Err(why) => unreadable.push(Unreadable { path, why }),
            }
        }
        Ok((results, unreadable))
    }

    /// What happened here, oldest first.
    pub fn history(&self) -> Vec<Entry> {
        journal::read(&self.path.join(JOURNAL))
    }

    pub(super) fn journal(&self, entry: &Entry) -> Result<()> {
        journal::append(&self.path.join(JOURNAL), entry)
    }

    /// Removes a plan that was refused before anything of it was begun, so that the folder is free
    /// for another one. What cannot be removed stays: it is a plan that can be resumed.
    pub(super) fn forget_unbegun(&self) {
        if self.path.join(JOURNAL).exists() || std::fs::remove_dir(self.path.join(RUNS)).is_err() {
            return;
        }
        for file in [PLAN, SITE, LOCK] {
            let _ = std::fs::remove_file(self.path.join(file));
        }
        if self.is_new {
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    /// Only one laboratory works in a folder.
    pub(super) fn lock(&self) -> Result<File> {
        let path = self.path.join(LOCK);
        let lock = File::create(&path).map_err(Error::io("create", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::Refused(format!(
                "another laboratory works in {}: wait for it, or name another directory with --into",
                self.path.display()
            ))),
            Err(std::fs::TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
        }
    }

    /// Removes what a killed run left unfinished. Where the runs are gone altogether there is
    /// nothing to remove.
    pub(super) fn clean(&self) -> Result<()> {
        let runs = self.path.join(RUNS);
        let entries = match std::fs::read_dir(&runs) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(Error::io("list", &runs))?,
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PART) {
                let path = entry.path();
                std::fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }

    /// An empty folder for a run in flight.
    pub(super) fn begin_run(&self, cell: &Cell) -> Result<PathBuf> {
        let part = self.path.join(RUNS).join(format!("{PART}{}", cell.id));
        std::fs::create_dir_all(&part).map_err(Error::io("create", &part))?;
        Ok(part)
    }

    /// Makes a run count: its result is written and synced, then the folder gets its name in one
    /// step.
    pub(super) fn end_run(&self, part: &Path, result: &RunResult) -> Result<()> {
        let text = serde_json::to_vec_pretty(result).expect("plain data can be written as JSON");
        write_whole(part, RESULT, &text)?;
        let whole = self.run_folder(&result.cell.id);
        if whole.exists() {
            // An earlier result that is made again.
            std::fs::remove_dir_all(&whole).map_err(Error::io("remove", &whole))?;
        }
        std::fs::rename(part, &whole).map_err(Error::io("create", &whole))?;
        sync_folder(&self.path.join(RUNS))
    }
}

/// Whether an entry is what [`RunFolder::create`] leaves when it is killed before the plan has its
/// name: a plan half written, and a place for runs with nothing in it.
fn is_from_a_killed_start(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let Ok(kind) = entry.file_type() else {
        return false;
    };
    if kind.is_file() {
        return name.to_string_lossy().starts_with(PART);
    }
    let holds_nothing = || {
        let entries = std::fs::read_dir(entry.path());
        entries.is_ok_and(|mut entries| entries.next().is_none())
    };
    kind.is_dir() && name == RUNS && holds_nothing()
}

fn read_result(path: &Path, cell: &Cell) -> std::result::Result<RunResult, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let result: RunResult = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if result.cell == *cell {
        Ok(result)
    } else {
        Err(format!(
            "it is the result of {}, not of {}",
            result.cell.id, cell.id
        ))
    }
}

/// Writes a file that appears whole or not at all.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let part = folder.join(format!("{PART}{name}"));
    let path = folder.join(name);
    let mut file = File::create(&part).map_err(Error::io("create", &part))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(Error::io("write", &part))?;
    std::fs::rename(&part, &path).map_err(Error::io("create", &path))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|open| open.sync_all())
        .map_err(Error::io("sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::plan;

    #[test]
    fn runs_that_are_gone_are_made_anew() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = RunFolder::create(home.path(), plan(1)).expect("a run directory");
        std::fs::remove_dir_all(home.path().join(RUNS)).expect("no runs");
        folder.clean().expect("nothing to remove");
        let cell = &folder.plan().cells[0];
        let part = folder.begin_run(cell).expect("a directory for the run");
        let result = crate::analysis::tests::result(cell, 1.0);
        folder.end_run(&part, &result).expect("a result");
        let (results, unreadable) = folder.results().expect("results");
        assert_eq!((results.len(), unreadable.len()), (1, 0));
        assert_eq!(results[0].cell, *cell);
    }

    #[test]
    fn a_start_that_was_killed_before_the_plan_had_its_name_can_be_repeated() {
        let home = tempfile::tempdir().expect("a directory");
        let (part, runs) = (home.path().join(".part-plan.json"), home.path().join(RUNS));
        std::fs::create_dir(&runs).expect("a directory");
        std::fs::write(&part, "{\"schema\": \"pgcl").expect("half a plan");
        RunFolder::create(home.path(), plan(1)).expect("a run directory");
        RunFolder::open(home.path()).expect("a plan");
        assert!(!part.exists(), "the half plan became a whole one");
    }

    #[test]
    fn a_folder_with_anything_else_in_it_is_left_alone() {
        for file in ["letters.txt", "runs/letters.txt", "runs"] {
            let home = tempfile::tempdir().expect("a directory");
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(&path, "").expect("a file");
            let refused = RunFolder::create(home.path(), plan(1)).expect_err(file);
            assert!(refused.to_string().contains("is not empty"), "{refused}");
        }
    }
}
