//! Writes a patch to a cluster: look, journal, write, read back, mark.
//!
//! ```text
//! verify all ─► files beside, kept files, journal (planned) ─► sync ─► write, sync ─► … ─► read back ─► journal (applied)
//! ```

use std::path::Path;

use pgclinic_model::plan::Change;

use crate::appended;
use crate::error::{Error, Result};
use crate::journal::{Journal, JournalFolder, Range, State, each_step};
use crate::new_files;
use crate::operate::FileBeside;
use crate::storage::Storage;
use crate::target::{FileChange, targets};

/// Carries out the patch of `journal`, whose state is planned, on the cluster that it names.
pub(crate) fn carry_out(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    beside: &[FileBeside],
) -> Result<()> {
    let mut journal = journal.clone();
    let patch = journal.patch.clone();
    let targets = targets(&patch, &journal.pgdata)?;
    for target in &targets {
        check_before(storage, target)?;
        if new_files::is_own_file(target.change) && !makes_file(target.change) {
            storage
                .may_write(&target.file)
                .map_err(Error::io("open for writing", &target.file))?;
        }
    }
    let were_there = storage.names(folder.path()).ok();
    let kept = prepare(storage, folder, (&mut journal, &targets), beside);
    if kept.is_err() {
        folder.give_up(storage, were_there.as_deref());
    }
    kept?;
    for target in &targets {
        write(storage, folder, target)?;
    }
    for target in &targets {
        check_after(storage, target)?;
    }
    journal.state = State::Applied;
    folder.write(storage, &journal)
}

/// Everything that must be on the disk before the first byte of the cluster changes.
fn prepare(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    (journal, targets): (&mut Journal, &[FileChange<'_>]),
    beside: &[FileBeside],
) -> Result<()> {
    folder.create(storage)?;
    for file in beside {
        folder.save(storage, file)?;
    }
    for target in targets {
        journal.kept.extend(folder.keep(storage, target)?);
    }
    journal.state = State::Planned;
    folder.write(storage, journal)
}

fn check_before(storage: &dyn Storage, target: &FileChange<'_>) -> Result<()> {
    if !new_files::is_own_file(target.change) {
        return new_files::check_before(storage, target);
    }
    let changed = |why: String| Error::Changed {
        path: target.change.path().into(),
        why,
    };
    let len = storage
        .len(&target.file)
        .map_err(Error::io("examine", &target.file))?;
    if makes_file(target.change) {
        return match len {
            None => Ok(()),
            Some(_) => Err(changed("it is there again".into())),
        };
    }
    let len = len.ok_or_else(|| changed("it is gone".into()))?;
    if let Some((Some(before), _)) = target.change.growth().filter(|own| own.0 != Some(len)) {
        return Err(changed(format!("it has {len} bytes, not {before}")));
    }
    match target.change {
        Change::Bytes { offset, before, .. } if !holds(storage, &target.file, *offset, before)? => {
            Err(changed(format!("other bytes stand at offset {offset}")))
        }
        Change::Cut { len: cut, .. } if len < *cut => {
            Err(changed(format!("it has {len} bytes, fewer than {cut}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn write(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    target: &FileChange<'_>,
) -> Result<()> {
    let file = &target.file;
    match target.change {
        Change::Bytes { offset, after, .. } => storage
            .write_at(file, *offset, after)
            .and_then(|()| storage.sync(file)),
        Change::Cut { len, .. } => storage.cut(file, *len).and_then(|()| storage.sync(file)),
        Change::Remove { .. } => {
            let folder = file.parent().unwrap_or(file);
            storage
                .remove(file)
                .and_then(|()| storage.sync_folder(folder))
        }
        Change::Extend { before, after, .. } => extend(storage, file, *before, after),
        Change::Append { .. } => return appended::write(storage, folder, target),
        _ => new_files::write(storage, target),
    }
    .map_err(Error::io("write", file))
}

/// What the change writes is there to be written.
pub(crate) fn check_source(
    storage: &dyn Storage,
    folder: &JournalFolder,
    target: &FileChange<'_>,
) -> Result<()> {
    match target.change {
        Change::Append { .. } => appended::check_source(storage, folder, target),
        _ => Ok(()),
    }
}

/// The file is not there before.
fn makes_file(change: &Change) -> bool {
    change.growth().is_some_and(|(before, _)| before.is_none())
}

/// A file that is not there is made whole.
fn extend(
    storage: &mut dyn Storage,
    file: &Path,
    before: Option<u64>,
    after: &[u8],
) -> std::io::Result<()> {
    let Some(before) = before else {
        return new_files::write_file(storage, file, after, after.len() as u64);
    };
    storage.write_at(file, before, after)?;
    storage.sync(file)
}

/// What was found written may still be in memory only.
pub(crate) fn make_last(storage: &mut dyn Storage, target: &FileChange<'_>) -> Result<()> {
    let file = &target.file;
    let home = file.parent().unwrap_or(file);
    match target.change {
        Change::Bytes { .. }
        | Change::Cut { .. }
        | Change::Extend { .. }
        | Change::Append { .. }
        | Change::Write { .. } => storage.sync(file).and_then(|()| storage.sync_folder(home)),
        Change::Remove { .. }
        | Change::Directory { .. }
        | Change::RemoveDirectory { .. }
        | Change::Link { .. } => storage.sync_folder(home),
        Change::Mode { .. } => Ok(()),
    }
    .map_err(Error::io("sync", file))
}

pub(crate) fn check_after(storage: &dyn Storage, target: &FileChange<'_>) -> Result<()> {
    if is_written(storage, target)? {
        return Ok(());
    }
    Err(Error::Foreign {
        path: target.change.path().into(),
        why: "what was written is not what is read back; undo it with the journal".into(),
    })
}

/// The change is there, and whole.
pub(crate) fn is_written(storage: &dyn Storage, target: &FileChange<'_>) -> Result<bool> {
    let file = &target.file;
    let len = || storage.len(file).map_err(Error::io("read back", file));
    match target.change {
        Change::Bytes { offset, after, .. } => holds(storage, file, *offset, after),
        Change::Cut { len: cut, .. } => Ok(len()? == Some(*cut)),
        Change::Remove { .. } => Ok(len()?.is_none()),
        Change::Extend { before, after, .. } => {
            let start = before.unwrap_or(0);
            let is_as_long = len()? == Some(start.saturating_add(after.len() as u64));
            Ok(is_as_long && holds(storage, file, start, after)?)
        }
        Change::Append { .. } => appended::is_written(storage, target),
        _ => new_files::is_written(storage, target),
    }
}

/// The file holds exactly these bytes at this offset.
pub(crate) fn holds(storage: &dyn Storage, file: &Path, offset: u64, bytes: &[u8]) -> Result<bool> {
    let range = Range {
        offset,
        len: bytes.len() as u64,
    };
    let (mut same, mut seen) = (true, 0usize);
    each_step(storage, file, range, &mut |_, part| {
        let end = seen.saturating_add(part.len());
        same &= bytes.get(seen..end) == Some(part);
        seen = end;
        Ok(())
    })?;
    Ok(same && seen == bytes.len())
}
