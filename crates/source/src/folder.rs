//! Opening and listing below one folder without hanging, without writing and, where allowed,
//! without new access times.
//!
//! Every path is resolved from an open folder. What a name leads to is looked at before it is
//! opened, as opening a FIFO or a device may wait or have effects of its own; it is looked at again
//! afterwards, as it may have been exchanged.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::{Errno, retry_on_intr};

use crate::open_files::Identity;
use crate::{Entry, EntryKind, Result, SourceError, SourceErrorKind};

/// Opens a folder of the operating system by its own path.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    let shown = path.to_string_lossy();
    open_quietly(CWD, path, OFlags::DIRECTORY).map_err(|errno| match errno {
        Errno::NOTDIR if path.is_file() => SourceError::not_folder(&shown),
        _ => trouble(&shown, errno),
    })
}

/// Opens a regular file; everything else is refused before it is touched.
pub(crate) fn open_file(root: &OwnedFd, path: &str) -> Result<(File, Identity)> {
    stat_file(root, path)?;
    let file = open_quietly(root, Path::new(path), OFlags::NONBLOCK)
        .map_err(|errno| file_trouble(root, path, errno))?;
    let seen = fstat(&file).map_err(|errno| trouble(path, errno))?;
    must_be_file(path, &seen)?;
    Ok((File::from(file), identity(&seen)))
}

/// Looks at a regular file without opening it: its length and which file it is.
pub(crate) fn stat_file(root: &OwnedFd, path: &str) -> Result<(u64, Identity)> {
    let name = if path.is_empty() { "." } else { path };
    let seen = retry_on_intr(|| statat(root, name, AtFlags::empty()))
        .map_err(|errno| file_trouble(root, path, errno))?;
    must_be_file(path, &seen)?;
    Ok((length(&seen), identity(&seen)))
}

/// The names in a folder, sorted, one look at each.
pub(crate) fn list(root: &OwnedFd, folder: &str) -> Result<Vec<Entry>> {
    let name = if folder.is_empty() { "." } else { folder };
    let opened =
        open_quietly(root, Path::new(name), OFlags::DIRECTORY).map_err(|errno| match errno {
            Errno::NOTDIR if is_there(root, folder) => SourceError::not_folder(folder),
            _ => trouble(folder, errno),
        })?;
    let names = Dir::read_from(&opened).map_err(|errno| trouble(folder, errno))?;
    let mut entries = Vec::new();
    for found in names {
        let found = found.map_err(|errno| trouble(folder, errno))?;
        if !matches!(found.file_name().to_bytes(), b"." | b"..") {
            entries.extend(entry(&opened, folder, &found)?);
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// One name of a listing; `None` when it vanished since.
fn entry(opened: &OwnedFd, folder: &str, found: &rustix::fs::DirEntry) -> Result<Option<Entry>> {
    let other = |name| {
        Ok(Some(Entry {
            name,
            kind: EntryKind::Other,
            len: 0,
        }))
    };
    let name = match found.file_name().to_str() {
        Ok(name) => name.to_owned(),
        Err(_) => return other(escaped(found.file_name().to_bytes())),
    };
    match retry_on_intr(|| statat(opened, found.file_name(), AtFlags::empty())) {
        // Links to folders are how tablespaces and WAL are laid out; a link to a file may lead
        // anywhere, and what it leads to does not belong into a report.
        Ok(seen) if is_link_to_file(found, &seen) => other(name),
        Ok(seen) => Ok(Some(described(name, &seen))),
        // A link that leads nowhere has its name still; who reads it learns why.
        Err(_) if found.file_type() == FileType::Symlink => other(name),
        // Not every file system says in a listing what is a link.
        Err(Errno::LOOP) => other(name),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => {
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            Err(trouble(&path, errno))
        }
    }
}

fn is_link_to_file(found: &rustix::fs::DirEntry, seen: &Stat) -> bool {
    let is_link = found.file_type() == FileType::Symlink;
    is_link && FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile
}

fn described(name: String, seen: &Stat) -> Entry {
    match FileType::from_raw_mode(seen.st_mode) {
        FileType::RegularFile => Entry {
            name,
            kind: EntryKind::File,
            len: length(seen),
        },
        FileType::Directory => Entry {
            name,
            kind: EntryKind::Folder,
            len: 0,
        },
        _ => Entry {
            name,
            kind: EntryKind::Other,
            len: 0,
        },
    }
}

/// A name that is not UTF-8, each foreign byte and each backslash as `\xNN`, so that no two names
/// meet.
fn escaped(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Opens for reading without a new access time; only the owner may ask for that, so others go
/// without.
fn open_quietly(at: impl AsFd, path: &Path, more: OFlags) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | more;
    match retry_on_intr(|| openat(&at, path, flags | OFlags::NOATIME, Mode::empty())) {
        Err(Errno::PERM) => retry_on_intr(|| openat(&at, path, flags, Mode::empty())),
        done => done,
    }
}

fn is_there(root: &OwnedFd, path: &str) -> bool {
    retry_on_intr(|| statat(root, path, AtFlags::empty())).is_ok()
}

fn must_be_file(path: &str, seen: &Stat) -> Result<()> {
    let what = match FileType::from_raw_mode(seen.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    };
    Err(SourceError::not_regular(path, what))
}

/// The same for a file: a link that leads nowhere is not a name that is absent, as a disk may only
/// not be mounted here.
fn file_trouble(root: &OwnedFd, path: &str, errno: Errno) -> SourceError {
    let own = || retry_on_intr(|| statat(root, path, AtFlags::SYMLINK_NOFOLLOW));
    match errno {
        Errno::NOENT if own().is_ok() => SourceError::new(
            path,
            SourceErrorKind::Dangling,
            "it is a symbolic link that leads nowhere",
        ),
        _ => trouble(path, errno),
    }
}

fn trouble(path: &str, errno: Errno) -> SourceError {
    match errno {
        Errno::LOOP => {
            SourceError::new(path, SourceErrorKind::Io, "symbolic links lead in a circle")
        }
        _ => SourceError::from_io(path, &io::Error::from(errno)),
    }
}

fn length(seen: &Stat) -> u64 {
    u64::try_from(seen.st_size).unwrap_or(0)
}

fn identity(seen: &Stat) -> Identity {
    (seen.st_dev, seen.st_ino)
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_that_are_not_utf8_stay_apart() {
        assert_eq!(escaped(b"a\xff"), "a\\xff");
        assert_eq!(escaped(b"a\\xff\xfe"), "a\\x5cxff\\xfe");
    }
}
