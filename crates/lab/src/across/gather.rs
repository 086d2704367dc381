//! Copies of folders of the laboratory, put into one.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::servers_of_arms::refuse_data_directory;

/// Copies the plan and the runs of each folder to `machines/<name>` below `into`, which must be new or empty.
///
/// # Errors
/// When `into` holds something, or a file cannot be copied.
pub fn gather<'a>(folders: impl Iterator<Item = (&'a Path, String)>, into: &Path) -> Result<()> {
    refuse_data_directory(into)?;
    let is_taken = fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        return Err(Error::Refused(format!(
            "{} is not empty: name a new folder with --into",
            into.display()
        )));
    }
    for (folder, name) in folders {
        copy_runs(folder, &into.join("machines").join(name))?;
    }
    Ok(())
}

/// Regular files, two levels deep, as the laboratory writes them.
fn copy_runs(from: &Path, to: &Path) -> Result<()> {
    let runs = to.join("runs");
    fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
    copy(&from.join("plan.json"), &to.join("plan.json"))?;
    let all = from.join("runs");
    for run in fs::read_dir(&all)
        .map_err(Error::io("list", &all))?
        .flatten()
    {
        let is_folder = run.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !run.file_name().to_string_lossy().starts_with('.') {
            copy_files(&run.path(), &runs.join(run.file_name()))?;
        }
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::io("create", to))?;
    for file in fs::read_dir(from)
        .map_err(Error::io("list", from))?
        .flatten()
    {
        if file.file_type().is_ok_and(|kind| kind.is_file()) {
            copy(&file.path(), &to.join(file.file_name()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(|_| ())
        .map_err(Error::io("copy", from))
}
