//! Takes a patch back, from wherever its writing or an earlier undo stopped.
//!
//! Nothing is written before every change was found in the state from before, from after, or in
//! between of them: sectors of 512 bytes are written whole, so a write that was cut short leaves
//! each of them either old or new.

use std::path::{Path, PathBuf};

use pgclinic_format::ControlFile;
use pgclinic_format::control_file::FILE_BYTES;
use pgclinic_model::plan::Change;

use crate::appended;
use crate::error::{Error, Result};
use crate::journal::{Journal, JournalFolder, Kept, Range, State, copy_range, each_step};
use crate::new_files;
use crate::storage::Storage;
use crate::target::{FileChange, targets};
use crate::writer::holds;

const SECTOR_BYTES: u64 = 512;
const CONTROL_FILE: &str = "global/pg_control";
/// Name behind a file that is being put back.
const RETURNING: &str = "pgclinic-undo";

/// How a change was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// As if nobody had written.
    Before,
    /// Written, or in between.
    NotBefore,
}

/// Undoes the journal on the cluster in `pgdata`; gives how many changes were still to be undone.
pub(crate) fn take_back(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    pgdata: &Path,
) -> Result<u64> {
    let mut journal = folder.read(storage)?;
    let patch = journal.patch.clone();
    let targets = targets(&patch, pgdata)?;
    check_identity(storage, folder, &journal, pgdata)?;
    let mut found = Vec::new();
    for target in &targets {
        found.push(examine(storage, folder, &journal, target)?);
        new_files::check_only_ours(storage, &targets, target)?;
    }
    let mut undone = 0;
    for target in targets.iter().rev() {
        new_files::clear_unfinished(storage, target)?;
    }
    for (target, found) in targets.iter().zip(&found).rev() {
        if *found == Found::NotBefore {
            restore(storage, folder, &journal, target)?;
            undone += 1;
        }
    }
    for target in &targets {
        verify(storage, folder, &journal, target)?;
    }
    if journal.state != State::Undone {
        journal.state = State::Undone;
        folder.write(storage, &journal)?;
    }
    Ok(undone)
}

/// The cluster is the journal's: its control file, with the bytes from before laid over it, says
/// so. A journal of a cluster whose control file made no sense is known by its bytes alone.
pub(crate) fn check_identity(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    pgdata: &Path,
) -> Result<()> {
    let Some(wanted) = journal.identifier() else {
        return Ok(());
    };
    let bytes = control_file_before(storage, folder, journal, pgdata)?;
    let found = ControlFile::parse(&bytes)
        .ok()
        .filter(ControlFile::crc_is_right)
        .map(|control| control.system_identifier);
    if found == Some(wanted) {
        return Ok(());
    }
    Err(Error::OtherCluster {
        journal: wanted,
        found,
    })
}

fn control_file_before(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    pgdata: &Path,
) -> Result<Vec<u8>> {
    let mut bytes = read_up_to(storage, &pgdata.join(CONTROL_FILE), FILE_BYTES)?;
    let own = |change: &&Change| change.path() == CONTROL_FILE;
    for change in journal.patch.changes.iter().filter(own) {
        let (offset, before) = match change {
            Change::Bytes { offset, before, .. } => (*offset, before.clone()),
            Change::Cut { len, kept, .. } => {
                (*len, read_up_to(storage, &folder.kept(kept), FILE_BYTES)?)
            }
            Change::Remove { kept, .. } => {
                (0, read_up_to(storage, &folder.kept(kept), FILE_BYTES)?)
            }
            Change::Write { kept, .. } => {
                bytes.clear();
                match kept {
                    Some(kept) => (0, read_up_to(storage, &folder.kept(kept), FILE_BYTES)?),
                    None => continue,
                }
            }
            Change::Extend { .. }
            | Change::Append { .. }
            | Change::Directory { .. }
            | Change::RemoveDirectory { .. }
            | Change::Mode { .. }
            | Change::Link { .. } => continue,
        };
        let start = usize::try_from(offset)
            .unwrap_or(FILE_BYTES)
            .min(FILE_BYTES);
        let end = start.saturating_add(before.len());
        bytes.resize(bytes.len().max(end), 0);
        if let Some(slot) = bytes.get_mut(start..end) {
            slot.copy_from_slice(&before);
        }
    }
    Ok(bytes)
}

fn read_up_to(storage: &dyn Storage, path: &Path, limit: usize) -> Result<Vec<u8>> {
    if storage
        .len(path)
        .map_err(Error::io("read", path))?
        .is_none()
    {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; limit];
    let read = storage
        .read_at(path, 0, &mut bytes)
        .map_err(Error::io("read", path))?;
    bytes.truncate(read);
    Ok(bytes)
}

pub(crate) fn foreign(target: &FileChange<'_>, why: impl Into<String>) -> Error {
    Error::Foreign {
        path: target.change.path().into(),
        why: why.into(),
    }
}

pub(crate) fn kept_of<'a>(
    folder: &JournalFolder,
    journal: &'a Journal,
    name: &str,
) -> Result<&'a Kept> {
    journal
        .kept(name)
        .ok_or_else(|| folder.unusable(format!("it does not tell about {name}")))
}

/// How a change is found; anything that is neither from before nor from after is an error.
pub(crate) fn examine(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<Found> {
    let len = || {
        let len = storage.len(&target.file);
        len.map_err(Error::io("examine", &target.file))
    };
    match target.change {
        Change::Bytes {
            offset,
            before,
            after,
            ..
        } => examine_bytes(storage, target, *offset, before, after),
        Change::Cut { len: cut, kept, .. } => {
            let kept = kept_of(folder, journal, kept)?;
            folder.check_kept(storage, kept)?;
            let len = len()?.ok_or_else(|| foreign(target, "it is gone"))?;
            let whole = cut.saturating_add(kept.len);
            if !(*cut..=whole).contains(&len) {
                return Err(foreign(
                    target,
                    format!("it has {len} bytes, not {cut} to {whole}"),
                ));
            }
            let tail = Range {
                offset: *cut,
                len: len - cut,
            };
            let same = compare_with_kept(storage, folder, kept, target, tail)?;
            Ok(if same && len == whole {
                Found::Before
            } else {
                Found::NotBefore
            })
        }
        Change::Remove { kept, .. } => {
            let kept = kept_of(folder, journal, kept)?;
            folder.check_kept(storage, kept)?;
            let Some(len) = len()? else {
                return Ok(Found::NotBefore);
            };
            if len != kept.len || !same_as_kept(storage, folder, kept, target)? {
                return Err(foreign(target, "a file of that name is there again"));
            }
            Ok(Found::Before)
        }
        Change::Extend { before, after, .. } => {
            examine_extension(storage, target, (*before, len()?), after)
        }
        Change::Append { .. } => appended::examine(storage, folder, target),
        _ => new_files::examine(storage, folder, journal, target),
    }
}

/// A file that was made longer has its old length, its new one or one between; what stands past the
/// old one was written, or is zero where the writing was cut short.
fn examine_extension(
    storage: &dyn Storage,
    target: &FileChange<'_>,
    (before, len): (Option<u64>, Option<u64>),
    after: &[u8],
) -> Result<Found> {
    if len == before {
        return Ok(Found::Before);
    }
    let start = before.unwrap_or(0);
    let tail = grown_tail(target, len, (start, after.len() as u64))?;
    is_ours_or_zero(storage, target, tail, &mut |done, len| {
        let from = usize::try_from(done).unwrap_or(usize::MAX);
        let wanted = after.get(from..).unwrap_or_default();
        Ok(wanted.get(..len).unwrap_or(wanted).to_vec())
    })?;
    Ok(Found::NotBefore)
}

/// What stands past the old end of a file that became longer.
pub(crate) fn grown_tail(
    target: &FileChange<'_>,
    len: Option<u64>,
    (start, bytes): (u64, u64),
) -> Result<Range> {
    let len = len.ok_or_else(|| foreign(target, "it is gone"))?;
    let end = start.saturating_add(bytes);
    if !(start..=end).contains(&len) {
        return Err(foreign(
            target,
            format!("it has {len} bytes, not {start} to {end}"),
        ));
    }
    Ok(Range {
        offset: start,
        len: len - start,
    })
}

/// Where the file's sector that byte `at` of a run belongs to ends, in the run.
fn sector_end(run_offset: u64, at: usize) -> usize {
    let here = run_offset.saturating_add(at as u64);
    at.saturating_add(usize::try_from(SECTOR_BYTES - here % SECTOR_BYTES).unwrap_or(1))
}

/// Each sector must be wholly old or wholly new.
fn examine_bytes(
    storage: &dyn Storage,
    target: &FileChange<'_>,
    offset: u64,
    before: &[u8],
    after: &[u8],
) -> Result<Found> {
    let mut now = vec![0; before.len()];
    let read = storage
        .read_at(&target.file, offset, &mut now)
        .map_err(Error::io("read", &target.file))?;
    if read < now.len() {
        return Err(foreign(target, "it became shorter"));
    }
    if now == before {
        return Ok(Found::Before);
    }
    let mut at = 0usize;
    while at < now.len() {
        let here = offset.saturating_add(at as u64);
        let end = sector_end(offset, at).min(now.len());
        let sector = now.get(at..end);
        if sector != before.get(at..end) && sector != after.get(at..end) {
            return Err(foreign(target, format!("at offset {here}")));
        }
        at = end;
    }
    Ok(Found::NotBefore)
}

/// The tail of a cut file may hold kept bytes or, where a restoring was cut short, zeros; `true`
/// when it holds kept bytes only.
fn compare_with_kept(
    storage: &dyn Storage,
    folder: &JournalFolder,
    kept: &Kept,
    target: &FileChange<'_>,
    tail: Range,
) -> Result<bool> {
    let copy = folder.kept(&kept.file);
    is_ours_or_zero(storage, target, tail, &mut |done, len| {
        bytes_of(storage, &copy, done, len)
    })
}

/// Bytes of a file; fewer where it ends before.
pub(crate) fn bytes_of(
    storage: &dyn Storage,
    file: &Path,
    offset: u64,
    len: usize,
) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let read = storage
        .read_at(file, offset, &mut bytes)
        .map_err(Error::io("read", file))?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The tail of a file holds what was written there or, where the writing was cut short, sectors of
/// zeros; `true` when it holds only the first. `wanted` gives bytes by their offset in the tail.
pub(crate) fn is_ours_or_zero(
    storage: &dyn Storage,
    target: &FileChange<'_>,
    tail: Range,
    wanted: &mut dyn FnMut(u64, usize) -> Result<Vec<u8>>,
) -> Result<bool> {
    let mut same = true;
    each_step(storage, &target.file, tail, &mut |done, part| {
        let wanted = wanted(done, part.len())?;
        let mut at = 0usize;
        while at < part.len() {
            let end = sector_end(tail.offset.saturating_add(done), at).min(part.len());
            let (now, wanted) = (part.get(at..end), wanted.get(at..end));
            if now != wanted {
                same = false;
                if now.is_some_and(|now| now.iter().any(|byte| *byte != 0)) {
                    return Err(foreign(target, "it grew and holds other bytes"));
                }
            }
            at = end;
        }
        Ok(())
    })?;
    Ok(same)
}

pub(crate) fn same_as_kept(
    storage: &dyn Storage,
    folder: &JournalFolder,
    kept: &Kept,
    target: &FileChange<'_>,
) -> Result<bool> {
    let copy = folder.kept(&kept.file);
    let range = Range {
        offset: kept.offset,
        len: kept.len,
    };
    let (mut same, mut seen) = (true, 0u64);
    each_step(storage, &target.file, range, &mut |done, part| {
        let mut wanted = vec![0; part.len()];
        let read = storage
            .read_at(&copy, done, &mut wanted)
            .map_err(Error::io("read", &copy))?;
        same &= wanted.get(..read) == Some(part);
        seen += part.len() as u64;
        Ok(())
    })?;
    Ok(same && seen == kept.len)
}

fn restore(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<()> {
    let file = &target.file;
    match target.change {
        Change::Bytes { offset, before, .. } => storage
            .write_at(file, *offset, before)
            .and_then(|()| storage.sync(file))
            .map_err(Error::io("write", file)),
        Change::Cut { len, kept, .. } => {
            let kept = kept_of(folder, journal, kept)?;
            let range = Range {
                offset: 0,
                len: kept.len,
            };
            copy_range(storage, &folder.kept(&kept.file), range, file, *len)?;
            storage.sync(file).map_err(Error::io("sync", file))
        }
        Change::Remove { kept, .. } => {
            put_back(storage, folder, kept_of(folder, journal, kept)?, file)
        }
        Change::Extend { before, .. } | Change::Append { before, .. } => {
            shorten(storage, file, *before)
        }
        _ => new_files::restore(storage, folder, journal, target),
    }
}

/// As long as it was, or gone.
fn shorten(storage: &mut dyn Storage, file: &Path, before: Option<u64>) -> Result<()> {
    let home = file.parent().unwrap_or(file);
    match before {
        Some(len) => storage.cut(file, len).and_then(|()| storage.sync(file)),
        None => storage
            .remove(file)
            .and_then(|()| storage.sync_folder(home)),
    }
    .map_err(Error::io("shorten", file))
}

/// Under another name first, so that the file is there whole or not at all.
pub(crate) fn put_back(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    kept: &Kept,
    file: &Path,
) -> Result<()> {
    let returning = returning(file);
    storage
        .create(&returning, Some(kept.owner))
        .map_err(Error::io("create", &returning))?;
    let range = Range {
        offset: 0,
        len: kept.len,
    };
    copy_range(storage, &folder.kept(&kept.file), range, &returning, 0)?;
    let home = file.parent().unwrap_or(file);
    storage
        .sync(&returning)
        .and_then(|()| storage.rename(&returning, file))
        .and_then(|()| storage.sync_folder(home))
        .map_err(Error::io("put back", file))
}

/// The name of a file that is being put back.
pub(crate) fn returning(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(RETURNING);
    PathBuf::from(name)
}

fn verify(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<()> {
    let right = match target.change {
        Change::Bytes { offset, before, .. } => holds(storage, &target.file, *offset, before)?,
        Change::Cut { kept, .. } | Change::Remove { kept, .. } => {
            let kept = kept_of(folder, journal, kept)?;
            let len = storage
                .len(&target.file)
                .map_err(Error::io("examine", &target.file))?;
            len == Some(kept.offset.saturating_add(kept.len))
                && same_as_kept(storage, folder, kept, target)?
        }
        Change::Extend { before, .. } | Change::Append { before, .. } => {
            let len = storage
                .len(&target.file)
                .map_err(Error::io("examine", &target.file))?;
            len == *before
        }
        _ => new_files::is_restored(storage, folder, journal, target)?,
    };
    if right {
        return Ok(());
    }
    Err(foreign(
        target,
        "what was put back is not what is read back",
    ))
}
