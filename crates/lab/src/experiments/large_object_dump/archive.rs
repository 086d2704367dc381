//! The size of what `pg_dump` wrote.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

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
            .map_err(Error::io("look at", path))?
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

/// The number of entries that `pg_restore -l` names at the head of its listing; the rest is not waited for.
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
