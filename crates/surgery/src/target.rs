//! A patch that has been looked at: every path stays in the cluster, no two changes touch the same
//! bytes.

use std::path::{Component, Path, PathBuf};

use pgclinic_model::plan::{Change, Patch};

use crate::error::{Error, Result};

/// One change and the file it really concerns.
#[derive(Clone, Debug)]
pub(crate) struct FileChange<'a> {
    pub(crate) change: &'a Change,
    pub(crate) file: PathBuf,
}

/// The targets of a patch under `pgdata`, whose links have been resolved by the caller.
pub(crate) fn targets<'a>(patch: &'a Patch, pgdata: &Path) -> Result<Vec<FileChange<'a>>> {
    check_overlaps(patch)?;
    let target = |change: &'a Change| {
        check_path(change)?;
        check_shape(change)?;
        Ok(FileChange {
            change,
            file: pgdata.join(change.path()),
        })
    };
    patch.changes.iter().map(target).collect()
}

fn check_path(change: &Change) -> Result<()> {
    let path = change.path();
    // The server refuses to start on a data directory that others may enter.
    let is_root = path == "." && matches!(change, Change::Mode { .. });
    let plain = is_root
        || !path.is_empty()
            && Path::new(path)
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
    if plain {
        return Ok(());
    }
    Err(Error::Path {
        path: path.into(),
        why: "it is not a plain path below the data directory".into(),
    })
}

fn check_shape(change: &Change) -> Result<()> {
    let why = match change {
        Change::Bytes { before, after, .. } if before.len() != after.len() => {
            "bytes are replaced by another number of bytes"
        }
        Change::Bytes { offset, before, .. }
            if offset.checked_add(before.len() as u64).is_none() =>
        {
            "a change ends beyond the last possible offset"
        }
        own if ends_nowhere(own) => "a file would end beyond the last possible offset",
        Change::Append { from, .. } if !is_file_name(from) => {
            "what is appended does not lie in a file beside the journal"
        }
        Change::Write { bytes, len, .. } if *len < bytes.len() as u64 => {
            "a file is shorter than what it begins with"
        }
        other if other.kept().is_some_and(|kept| !is_file_name(kept)) => {
            "a kept file is not a plain file name"
        }
        _ => return Ok(()),
    };
    Err(Error::Patch { why: why.into() })
}

fn ends_nowhere(change: &Change) -> bool {
    let growth = change.growth();
    growth.is_some_and(|(before, len)| before.unwrap_or(0).checked_add(len).is_none())
}

fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    ) && name != crate::journal::JOURNAL_FILE
}

/// Changes of one file stand in the order of their bytes then, so that only neighbours may touch.
fn check_overlaps(patch: &Patch) -> Result<()> {
    let mut changes: Vec<&Change> = patch.changes.iter().collect();
    changes.sort_by_key(|change| (change.path(), first_byte(change)));
    let mut pairs = changes.iter().zip(changes.iter().skip(1));
    match pairs.find(|(one, other)| one.path() == other.path() && touch(one, other)) {
        None => Ok(()),
        Some((one, _)) => Err(Error::Patch {
            why: format!("two changes touch the same bytes of {}", one.path()),
        }),
    }
}

/// What cuts or removes a file touches every other change of it, so that it comes first.
fn first_byte(change: &Change) -> u64 {
    match change {
        Change::Bytes { offset, .. } => *offset,
        own => own.growth().map_or(0, |(before, _)| before.unwrap_or(0)),
    }
}

fn touch(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (
            Change::Bytes { offset, after, .. },
            Change::Bytes {
                offset: second,
                after: bytes,
                ..
            },
        ) => {
            let end = offset.saturating_add(after.len() as u64);
            let second_end = second.saturating_add(bytes.len() as u64);
            *offset < second_end && *second < end
        }
        // What stands before the old end is not touched by what comes after it.
        (Change::Bytes { offset, after, .. }, other) => {
            let end = other.growth().and_then(|(before, _)| before);
            end.is_none_or(|end| offset.saturating_add(after.len() as u64) > end)
        }
        _ => true,
    }
}
