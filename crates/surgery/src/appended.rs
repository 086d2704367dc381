//! Bytes that are too many for a journal: they lie beside it, whole and lasting, before the file of
//! the cluster becomes longer by them.

use std::io;
use std::path::Path;

use pgclinic_model::plan::Change;

use crate::error::{Error, Result};
use crate::journal::{JournalFolder, Range, copy_range, hash_of};
use crate::new_files::make_file;
use crate::storage::Storage;
use crate::target::FileChange;
use crate::undo::{Found, bytes_of, grown_tail, is_ours_or_zero};

/// An [`Change::Append`].
struct Appended<'a> {
    before: Option<u64>,
    len: u64,
    from: &'a str,
    blake3: &'a str,
}

fn appended<'a>(target: &FileChange<'a>) -> Appended<'a> {
    let Change::Append {
        before,
        len,
        from,
        blake3,
        ..
    } = target.change
    else {
        unreachable!("only what is appended comes here");
    };
    Appended {
        before: *before,
        len: *len,
        from,
        blake3,
    }
}

/// Copies the bytes behind the end of the file; one that is not there is made whole.
pub(crate) fn write(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    target: &FileChange<'_>,
) -> Result<()> {
    let own = appended(target);
    let (from, file) = (folder.kept(own.from), &target.file);
    let all = Range {
        offset: 0,
        len: own.len,
    };
    let copy = |storage: &mut dyn Storage, to: &Path, offset: u64| {
        let hash = copy_range(storage, &from, all, to, offset).map_err(io::Error::other)?;
        if hash == own.blake3 {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} does not hold what was planned",
            from.display()
        )))
    };
    match own.before {
        Some(before) => copy(storage, file, before).and_then(|()| storage.sync(file)),
        None => make_file(storage, file, &mut |storage, to| copy(storage, to, 0)),
    }
    .map_err(Error::io("write", file))
}

/// The file ends with these bytes.
pub(crate) fn is_written(storage: &dyn Storage, target: &FileChange<'_>) -> Result<bool> {
    let own = appended(target);
    let start = own.before.unwrap_or(0);
    let len = storage
        .len(&target.file)
        .map_err(Error::io("read back", &target.file))?;
    if len != Some(start.saturating_add(own.len)) {
        return Ok(false);
    }
    let tail = Range {
        offset: start,
        len: own.len,
    };
    Ok(hash_of(storage, &target.file, tail)? == own.blake3)
}

/// As long as before, or longer by bytes that are ours.
pub(crate) fn examine(
    storage: &dyn Storage,
    folder: &JournalFolder,
    target: &FileChange<'_>,
) -> Result<Found> {
    let own = appended(target);
    let len = storage
        .len(&target.file)
        .map_err(Error::io("examine", &target.file))?;
    if len == own.before {
        return Ok(Found::Before);
    }
    // By its hash: the bytes beside the journal may be gone by then.
    if is_written(storage, target)? {
        return Ok(Found::NotBefore);
    }
    let tail = grown_tail(target, len, (own.before.unwrap_or(0), own.len))?;
    let from = folder.kept(own.from);
    check_source(storage, folder, target)?;
    is_ours_or_zero(storage, target, tail, &mut |done, len| {
        bytes_of(storage, &from, done, len)
    })?;
    Ok(Found::NotBefore)
}

/// What is to be appended lies beside the journal, whole.
pub(crate) fn check_source(
    storage: &dyn Storage,
    folder: &JournalFolder,
    target: &FileChange<'_>,
) -> Result<()> {
    let own = appended(target);
    let from = folder.kept(own.from);
    let len = storage.len(&from).map_err(Error::io("read", &from))?;
    let all = Range {
        offset: 0,
        len: own.len,
    };
    if len == Some(own.len) && hash_of(storage, &from, all)? == own.blake3 {
        return Ok(());
    }
    Err(folder.unusable(format!("its file {} is missing or damaged", own.from)))
}
