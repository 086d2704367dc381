//! The size of what `pg_dump` wrote.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::servers_of_arms::files_below;

/// Lines at the head of a listing that may come before the number of entries.
const HEAD_LINES_MAX: usize = 50;

/// What lies on disk.
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Of `toc.dat`, in the directory format.
    pub(super) catalogue_bytes: Option<u64>,
}

/// Looks at a file, or at all files of a folder.
pub(super) fn measure(archive: &Path) -> Result<Size> {
    let length = |path: &Path| -> Result<u64> {
        Ok(std::fs::metadata(path)
            .map_err(Error::io("examine", path))?
            .len())
    };
    if archive.is_file() {
        return Ok(Size {
            bytes: length(archive)?,
            files: 1,
            catalogue_bytes: None,
        });
    }
    let (mut bytes, mut files) = (0, 0);
    for entry in std::fs::read_dir(archive).map_err(Error::io("list", archive))? {
        let path = entry.map_err(Error::io("list", archive))?.path();
        bytes += length(&path)?;
        files += 1;
    }
    Ok(Size {
        bytes,
        files,
        catalogue_bytes: Some(length(&archive.join("toc.dat"))?),
    })
}

/// What `pgclinic salvage` left in a folder, and the number of large objects by its account.
pub(super) fn salvaged(folder: &Path) -> Result<(Size, u64)> {
    let account = folder.join("salvage.json");
    let text = std::fs::read(&account).map_err(Error::io("read", &account))?;
    let strange = || Error::Empty("the account of the salvage names no large objects".to_owned());
    let account: Value = serde_json::from_slice(&text).map_err(|_| strange())?;
    let databases = account
        .get("large_objects")
        .and_then(Value::as_array)
        .ok_or_else(strange)?;
    let objects = databases
        .iter()
        .filter_map(|one| one["objects"].as_u64())
        .sum();
    let files = files_below(folder);
    let lengths = files.iter().filter_map(|file| file.metadata().ok());
    let size = Size {
        bytes: lengths.map(|found| found.len()).sum(),
        files: u64::try_from(files.len()).unwrap_or(u64::MAX),
        catalogue_bytes: None,
    };
    Ok((size, objects))
}

/// The number of entries that `pg_restore -l` names at the head of its listing; the rest is not
/// waited for.
pub(super) fn entries(listing: &mut Command) -> Result<u64> {
    let program = PathBuf::from(listing.get_program());
    let mut child = listing
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Error::io("run", &program))?;
    let found = child.stdout.take().and_then(|out| {
        let lines = BufReader::new(out)
            .lines()
            .map_while(std::result::Result::ok);
        lines.take(HEAD_LINES_MAX).find_map(|line| count_in(&line))
    });
    let _ = child.kill();
    let _ = child.wait();
    found.ok_or_else(|| Error::Empty("pg_restore -l named no number of entries".to_owned()))
}

/// `;     TOC Entries: 1006`
fn count_in(line: &str) -> Option<u64> {
    line.trim_start_matches(';')
        .trim()
        .strip_prefix("TOC Entries:")?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_entries_stands_in_the_head() {
        assert_eq!(count_in(";     TOC Entries: 1006"), Some(1_006));
        assert_eq!(count_in("; Archive created at 2026-01-01"), None);
    }
}
