//! Copies of folders of the laboratory, put into one.
//!
//! ```text
//! every source is listed ─► copies below INTO/.part-merge ─► the caller's page beside them ─► all of it gets its name
//! ```
//!
//! What fails on the way takes its copies with it, and what a kill leaves is known by its name, so
//! that the same command can be given again.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::source::MACHINES;
use crate::error::{Error, Result};
use crate::servers_of_arms::refuse_data_directory;

/// Where everything lies before it gets its name.
const PART: &str = ".part-merge";

/// What of a folder is no run and is needed to judge it anew: the plan, and the blocks that were
/// dropped from it.
const PLAN: &str = "plan.json";
const JOURNAL: &str = "journal.jsonl";
const RUNS: &str = "runs";

/// Copies that have no name yet: they are removed with this value unless [`Gathered::finish`] was
/// called.
#[derive(Debug)]
pub struct Gathered {
    into: PathBuf,
    /// There was no such folder before.
    is_new: bool,
    /// What has its name already.
    named: Vec<PathBuf>,
    is_finished: bool,
}

/// Copies plan, journal and runs of each folder to `machines/<name>` below `into`, which must be
/// new or empty. Nothing is copied before all folders were read. A folder without `runs` has no
/// runs.
///
/// # Errors
/// When `into` holds something, or a file cannot be read or copied.
pub fn gather<'a>(
    folders: impl Iterator<Item = (&'a Path, String)>,
    into: &Path,
) -> Result<Gathered> {
    refuse_data_directory(into)?;
    refuse_taken(into)?;
    let mut found = Found::default();
    for (folder, name) in folders {
        found.list(folder, &Path::new(MACHINES).join(name))?;
    }
    let gathered = Gathered {
        into: into.to_path_buf(),
        is_new: !into.exists(),
        named: Vec::new(),
        is_finished: false,
    };
    gathered.copy(&found)?;
    Ok(gathered)
}

fn refuse_taken(into: &Path) -> Result<()> {
    let entries = match fs::read_dir(into) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(Error::io("list", into))?,
    };
    let is_part = |entry: DirEntry| entry.file_name() == PART;
    for entry in entries {
        if !entry.is_ok_and(is_part) {
            return Err(Error::Refused(format!(
                "{} is not empty: name a new directory with --into",
                into.display()
            )));
        }
    }
    Ok(())
}

/// What is to be copied; where to, relative to the destination.
#[derive(Debug, Default)]
struct Found {
    folders: Vec<PathBuf>,
    files: Vec<(PathBuf, PathBuf)>,
}

impl Found {
    /// Regular files, two levels deep, as the laboratory writes them.
    fn list(&mut self, from: &Path, to: &Path) -> Result<()> {
        let all = from.join(RUNS);
        self.folders.push(to.join(RUNS));
        self.files.push((from.join(PLAN), to.join(PLAN)));
        if from.join(JOURNAL).exists() {
            self.files.push((from.join(JOURNAL), to.join(JOURNAL)));
        }
        let runs = match fs::read_dir(&all) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.map_err(Error::io("list", &all))?,
        };
        for run in runs {
            let run = run.map_err(Error::io("list", &all))?;
            let is_folder = run.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !run.file_name().to_string_lossy().starts_with('.') {
                self.list_run(&run.path(), &to.join(RUNS).join(run.file_name()))?;
            }
        }
        Ok(())
    }

    fn list_run(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.folders.push(to.to_path_buf());
        for file in fs::read_dir(from).map_err(Error::io("list", from))? {
            let file = file.map_err(Error::io("list", from))?;
            if file.file_type().is_ok_and(|kind| kind.is_file()) {
                self.files.push((file.path(), to.join(file.file_name())));
            }
        }
        Ok(())
    }
}

impl Gathered {
    /// Where the copies lie now; what is put beside them gets its name with them.
    pub fn folder(&self) -> PathBuf {
        self.into.join(PART)
    }

    fn copy(&self, found: &Found) -> Result<()> {
        let part = self.folder();
        if part.exists() {
            // Of a merge that was killed.
            fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        }
        for folder in &found.folders {
            let to = part.join(folder);
            fs::create_dir_all(&to).map_err(Error::io("create", &to))?;
        }
        for (from, to) in &found.files {
            fs::copy(from, part.join(to)).map_err(Error::io("copy", from))?;
        }
        Ok(())
    }

    /// Gives everything its name below the destination.
    ///
    /// # Errors
    /// When something cannot be renamed; nothing stays then.
    pub fn finish(mut self) -> Result<()> {
        let part = self.folder();
        for entry in fs::read_dir(&part).map_err(Error::io("list", &part))? {
            let entry = entry.map_err(Error::io("list", &part))?;
            let to = self.into.join(entry.file_name());
            fs::rename(entry.path(), &to).map_err(Error::io("create", &to))?;
            self.named.push(to);
        }
        fs::remove_dir(&part).map_err(Error::io("remove", &part))?;
        self.is_finished = true;
        Ok(())
    }
}

/// What cannot be removed is no reason to hide why the copies were given up.
impl Drop for Gathered {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        for named in self.named.iter().chain([&self.folder()]) {
            let _ = fs::remove_dir_all(named);
            let _ = fs::remove_file(named);
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Source, is_merged};
    use super::*;
    use crate::analysis::tests::plan;
    use crate::runner::RunFolder;

    /// A folder with a plan and one run of these files.
    fn folder(home: &Path, name: &str, files: &[&str]) -> PathBuf {
        let path = home.join(name);
        RunFolder::create(&path, plan(1)).expect("a run directory");
        let run = path.join("runs/b01-one");
        fs::create_dir(&run).expect("a run's directory");
        for file in files {
            fs::write(run.join(file), name).expect("a file");
        }
        path
    }

    fn gathered(folders: &[&PathBuf], into: &Path) -> Result<Gathered> {
        let names = ["a".to_owned(), "b".to_owned()];
        gather(folders.iter().map(|path| path.as_path()).zip(names), into)
    }

    #[test]
    fn a_folder_without_runs_is_one_with_no_runs() {
        let home = tempfile::tempdir().expect("a directory");
        let one = folder(home.path(), "one", &["run.json", "server.log"]);
        let other = folder(home.path(), "other", &[]);
        fs::remove_dir_all(other.join("runs")).expect("no runs");
        let into = home.path().join("merged");
        // What a merge that was killed leaves is in nobody's way.
        fs::create_dir_all(into.join(".part-merge/machines/old")).expect("a directory");
        let made = gathered(&[&one, &other], &into).expect("copies");
        fs::write(made.folder().join("report.html"), "").expect("a page");
        assert!(!into.join("machines").exists(), "not before it is whole");
        made.finish().expect("names");
        for file in [
            "report.html",
            "machines/a/runs/b01-one/server.log",
            "machines/b/plan.json",
        ] {
            assert!(into.join(file).exists(), "{file}");
        }
        assert!(!into.join(".part-merge").exists() && !into.join("machines/old").exists());
        assert!(is_merged(&into).expect("machines") && !is_merged(&one).expect("a plan"));
        let sources = Source::open(&into).expect("two machines");
        let unreadable = sources
            .iter()
            .map(|source| source.recorded().unreadable.len());
        assert_eq!(unreadable.collect::<Vec<_>>(), [0, 0]);
        assert_eq!(
            gathered(&[&one], &into)
                .expect_err("it is full")
                .to_string(),
            format!(
                "{} is not empty: name a new directory with --into",
                into.display()
            )
        );
    }

    #[test]
    fn what_fails_leaves_nothing_that_refuses_a_repeat() {
        let home = tempfile::tempdir().expect("a directory");
        let one = folder(home.path(), "one", &["run.json"]);
        let broken = folder(home.path(), "broken", &["run.json"]);
        let (plan, kept) = (broken.join("plan.json"), broken.join("kept.json"));
        fs::rename(&plan, &kept).expect("no plan");
        let into = home.path().join("merged");
        let failed = gathered(&[&one, &broken], &into).expect_err("one has no plan");
        assert!(failed.to_string().contains("could not copy"), "{failed}");
        assert!(!into.exists());

        // A folder that was there already stays, and stays empty.
        fs::create_dir(&into).expect("a directory");
        gathered(&[&one, &broken], &into).expect_err("one has no plan");
        assert_eq!(fs::read_dir(&into).expect("a directory").count(), 0);

        fs::rename(&kept, &plan).expect("a plan");
        let made = gathered(&[&one, &broken], &into).expect("copies");
        // Nobody gave them their names: the page could not be written.
        drop(made);
        assert_eq!(fs::read_dir(&into).expect("a directory").count(), 0);
        gathered(&[&one, &broken], &into)
            .and_then(Gathered::finish)
            .expect("all of it");
        assert!(into.join("machines/b/runs/b01-one/run.json").exists());
    }
}
