//! What a patch makes: whole files, directories, permission bits, links.
//!
//! Each is made under another name and renamed, so that it is there whole, with its owner, or not
//! at all.

use std::io;
use std::path::{Path, PathBuf};

use pgclinic_model::plan::Change;

use crate::error::{Error, Result};
use crate::journal::{Journal, JournalFolder, Range, each_step};
use crate::storage::{Owner, Storage};
use crate::target::FileChange;
use crate::undo::{Found, foreign, kept_of, put_back, returning, same_as_kept};

/// Name behind a file that is being made.
const UNFINISHED: &str = "pgclinic-new";
/// Bytes of zeros that are written at once.
const STEP_BYTES: usize = 1 << 20;

/// The change is of bytes of a file that is there.
pub(crate) fn is_own_file(change: &Change) -> bool {
    matches!(
        change,
        Change::Bytes { .. }
            | Change::Cut { .. }
            | Change::Remove { .. }
            | Change::Extend { .. }
            | Change::Append { .. }
    )
}

/// The name is free, or what has it is what the plan was made for.
pub(crate) fn check_before(storage: &dyn Storage, target: &FileChange<'_>) -> Result<()> {
    let unfinished = unfinished(&target.file);
    let found = storage.is_there(&unfinished);
    if found.map_err(Error::io("look for", &unfinished))? {
        return Err(Error::Changed {
            path: unfinished.display().to_string(),
            why: "it has the name under which a file is made: move it away".into(),
        });
    }
    let is_as_planned = match target.change {
        Change::Write { kept: Some(_), .. } => len(storage, target)?.is_some(),
        Change::Mode { before, .. } => mode(storage, target)? == *before,
        Change::RemoveDirectory { .. } => is_there(storage, target)?,
        _ => !is_there(storage, target)?,
    };
    if is_as_planned {
        return Ok(());
    }
    Err(Error::Changed {
        path: target.change.path().into(),
        why: "it is not there, or not as it was, or something else has its name".into(),
    })
}

/// Makes it.
pub(crate) fn write(storage: &mut dyn Storage, target: &FileChange<'_>) -> io::Result<()> {
    let file = &target.file;
    let home = file.parent().unwrap_or(file);
    match target.change {
        Change::Write { bytes, len, .. } => write_file(storage, file, bytes, *len),
        Change::Directory { .. } => make_directory(storage, file),
        Change::RemoveDirectory { .. } => storage
            .remove_directory(file)
            .and_then(|()| storage.sync_folder(home)),
        Change::Mode { after, .. } => storage.set_mode(file, *after),
        Change::Link { target, .. } => make_link(storage, file, Path::new(target)),
        Change::Bytes { .. }
        | Change::Cut { .. }
        | Change::Remove { .. }
        | Change::Extend { .. }
        | Change::Append { .. } => Ok(()),
    }
}

/// Belongs to whom its directory belongs to. One that is there already was left by an earlier
/// version, which made directories by their own names, and belongs to somebody else perhaps.
fn make_directory(storage: &mut dyn Storage, file: &Path) -> io::Result<()> {
    let home = file.parent().unwrap_or(file);
    let owner = storage.owner(home)?;
    if storage.is_there(file)? {
        storage.give(file, owner)?;
        return storage.sync_folder(home);
    }
    let unfinished = unfinished(file);
    if storage.is_there(&unfinished)? {
        storage.remove_directory(&unfinished)?;
    }
    storage.create_directory(&unfinished)?;
    storage.give(&unfinished, owner)?;
    storage.rename(&unfinished, file)?;
    storage.sync_folder(home)
}

fn make_link(storage: &mut dyn Storage, file: &Path, target: &Path) -> io::Result<()> {
    let home = file.parent().unwrap_or(file);
    let unfinished = unfinished(file);
    if storage.is_there(&unfinished)? {
        storage.remove(&unfinished)?;
    }
    storage.link(target, &unfinished)?;
    let owner = storage.owner(home)?;
    storage.give(&unfinished, owner)?;
    storage.rename(&unfinished, file)?;
    storage.sync_folder(home)
}

/// A file that its directory's owner has, unless it is there.
pub(crate) fn write_file(
    storage: &mut dyn Storage,
    file: &Path,
    bytes: &[u8],
    len: u64,
) -> io::Result<()> {
    make_file(storage, file, &mut |storage, unfinished| {
        storage.write_at(unfinished, 0, bytes)?;
        let zeros = vec![0; STEP_BYTES];
        let mut at = bytes.len() as u64;
        while at < len {
            let step = usize::try_from(len - at).unwrap_or(STEP_BYTES);
            let step = zeros.get(..step.min(STEP_BYTES)).unwrap_or(&zeros);
            storage.write_at(unfinished, at, step)?;
            at += step.len() as u64;
        }
        Ok(())
    })
}

/// A file of the owner of its directory, or of the one that is there, with what `fill` writes.
pub(crate) fn make_file(
    storage: &mut dyn Storage,
    file: &Path,
    fill: &mut dyn FnMut(&mut dyn Storage, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let home = file.parent().unwrap_or(file);
    let owner = match storage.len(file)? {
        Some(_) => storage.owner(file)?,
        None => owner_of_files(storage.owner(home)?),
    };
    let unfinished = unfinished(file);
    storage.create(&unfinished, Some(owner))?;
    fill(storage, &unfinished)?;
    storage.sync(&unfinished)?;
    storage.rename(&unfinished, file)?;
    storage.sync_folder(home)
}

/// Files of a directory that its group may read are read by the group.
fn owner_of_files(directory: Owner) -> Owner {
    Owner {
        mode: directory.mode & 0o640 | 0o600,
        ..directory
    }
}

/// It is there as the patch has it.
pub(crate) fn is_written(storage: &dyn Storage, target: &FileChange<'_>) -> Result<bool> {
    let file = &target.file;
    match target.change {
        Change::Write {
            bytes, len: wanted, ..
        } => Ok(len(storage, target)? == Some(*wanted) && begins(storage, file, bytes, *wanted)?),
        Change::Directory { .. } => Ok(is_there(storage, target)? && is_of_home(storage, file)?),
        Change::RemoveDirectory { .. } => Ok(!is_there(storage, target)?),
        Change::Mode { after, .. } => Ok(mode(storage, target)? == *after),
        Change::Link { target: to, .. } => {
            let found = storage.link_target(file);
            let found = found.map_err(Error::io("examine", file))?;
            Ok(found.as_deref() == Some(Path::new(to)))
        }
        Change::Bytes { .. }
        | Change::Cut { .. }
        | Change::Remove { .. }
        | Change::Extend { .. }
        | Change::Append { .. } => Ok(false),
    }
}

/// It belongs to whom the directory belongs to that it lies in.
fn is_of_home(storage: &dyn Storage, file: &Path) -> Result<bool> {
    let home = file.parent().unwrap_or(file);
    let owner = |path: &Path| storage.owner(path).map_err(Error::io("examine", path));
    let (own, wanted) = (owner(file)?, owner(home)?);
    Ok((own.uid, own.gid) == (wanted.uid, wanted.gid))
}

/// These bytes, and zeros up to the end.
fn begins(storage: &dyn Storage, file: &Path, bytes: &[u8], len: u64) -> Result<bool> {
    let (mut same, mut seen) = (true, 0usize);
    each_step(storage, file, Range { offset: 0, len }, &mut |_, part| {
        let own = bytes.get(seen..).unwrap_or_default();
        let (begin, zeros) = part.split_at(own.len().min(part.len()));
        same &= own.starts_with(begin) && zeros.iter().all(|byte| *byte == 0);
        seen = seen.saturating_add(part.len());
        Ok(())
    })?;
    Ok(same)
}

/// As before, or written; anything else is somebody else's.
pub(crate) fn examine(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<Found> {
    if is_written(storage, target)? {
        return Ok(Found::NotBefore);
    }
    if is_restored(storage, folder, journal, target)? {
        return Ok(Found::Before);
    }
    if matches!(target.change, Change::Directory { .. }) {
        // It is there, and not yet its owner's.
        return Ok(Found::NotBefore);
    }
    Err(foreign(
        target,
        "it is neither what was there nor what was written",
    ))
}

/// What was there before is there.
pub(crate) fn is_restored(
    storage: &dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<bool> {
    match target.change {
        Change::Write {
            kept: Some(kept), ..
        } => {
            let kept = kept_of(folder, journal, kept)?;
            folder.check_kept(storage, kept)?;
            Ok(len(storage, target)? == Some(kept.len)
                && same_as_kept(storage, folder, kept, target)?)
        }
        Change::Mode { before, .. } => Ok(mode(storage, target)? == *before),
        Change::RemoveDirectory { .. } => is_there(storage, target),
        _ => Ok(!is_there(storage, target)?),
    }
}

/// Gives back what was there.
pub(crate) fn restore(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    journal: &Journal,
    target: &FileChange<'_>,
) -> Result<()> {
    let file = &target.file;
    let home = file.parent().unwrap_or(file);
    match target.change {
        Change::Write {
            kept: Some(kept), ..
        } => return put_back(storage, folder, kept_of(folder, journal, kept)?, file),
        Change::Mode { before, .. } => storage.set_mode(file, *before),
        Change::Directory { .. } => storage
            .remove_directory(file)
            .and_then(|()| storage.sync_folder(home)),
        Change::RemoveDirectory { .. } => make_directory(storage, file),
        _ => storage
            .remove(file)
            .and_then(|()| storage.sync_folder(home)),
    }
    .map_err(Error::io("put back", file))
}

/// Nothing lies in a directory that is to go but what goes with it.
pub(crate) fn check_only_ours(
    storage: &dyn Storage,
    targets: &[FileChange<'_>],
    target: &FileChange<'_>,
) -> Result<()> {
    if !matches!(target.change, Change::Directory { .. }) || !is_there(storage, target)? {
        return Ok(());
    }
    let names = storage.names(&target.file);
    let names = names.map_err(Error::io("list", &target.file))?;
    let is_ours = |name: &PathBuf| {
        let path = target.file.join(name);
        let own = |other: &FileChange<'_>| path == other.file || is_passing(&path, &other.file);
        targets.iter().any(own)
    };
    match names.iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(foreign(
            target,
            format!("{} came into it since", name.display()),
        )),
    }
}

fn is_passing(path: &Path, file: &Path) -> bool {
    path == unfinished(file) || path == returning(file)
}

/// Removes what a making or a putting back that was cut short left.
pub(crate) fn clear_unfinished(storage: &mut dyn Storage, target: &FileChange<'_>) -> Result<()> {
    let is_directory = match target.change {
        Change::Directory { .. } | Change::RemoveDirectory { .. } => true,
        Change::Write { .. } | Change::Remove { .. } | Change::Link { .. } => false,
        own if own.growth().is_some_and(|(before, _)| before.is_none()) => false,
        _ => return Ok(()),
    };
    for path in [unfinished(&target.file), returning(&target.file)] {
        let found = storage.is_there(&path);
        if !found.map_err(Error::io("look for", &path))? {
            continue;
        }
        let removed = if is_directory {
            storage.remove_directory(&path)
        } else {
            storage.remove(&path)
        };
        removed.map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

fn unfinished(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    PathBuf::from(name)
}

fn is_there(storage: &dyn Storage, target: &FileChange<'_>) -> Result<bool> {
    let found = storage.is_there(&target.file);
    found.map_err(Error::io("look for", &target.file))
}

fn len(storage: &dyn Storage, target: &FileChange<'_>) -> Result<Option<u64>> {
    let len = storage.len(&target.file);
    len.map_err(Error::io("examine", &target.file))
}

fn mode(storage: &dyn Storage, target: &FileChange<'_>) -> Result<u32> {
    let owner = storage.owner(&target.file);
    Ok(owner.map_err(Error::io("examine", &target.file))?.mode)
}
