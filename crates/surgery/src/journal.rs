//! The undo record: what is about to be written and what was there before, on disk before the first
//! byte changes.
//!
//! ```text
//! JOURNAL/journal.json     schema pgclinic.journal/1; state planned → applied → undone
//!         <kept files>     bytes of cut and removed files
//! ```
//!
//! Each state is written to a file of its own and renamed over the last one, so that a reader finds
//! one of them whole.

use std::path::{Path, PathBuf};

use pgclinic_model::document::Tool;
use pgclinic_model::plan::{Change, Patch};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::operate::FileBeside;
use crate::storage::{Owner, Storage};
use crate::target::FileChange;

/// Name of the journal in its folder.
pub const JOURNAL_FILE: &str = "journal.json";
/// The schema written here.
pub const SCHEMA: &str = "pgclinic.journal/1";
const NEXT_FILE: &str = "journal.json.next";
/// A journal is small: a page is 11 kB of base64.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;
const STEP_BYTES: usize = 1 << 20;

/// How far the work has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing, some or all of it was written.
    Planned,
    /// All of it was written.
    Applied,
    /// All of it was taken back.
    Undone,
}

/// A file beside the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Its name in the journal's folder.
    pub file: String,
    /// Where its bytes come from, relative to the data directory.
    pub path: String,
    /// Offset of the first of them.
    pub offset: u64,
    /// How many.
    pub len: u64,
    /// Owner and mode of the file they come from.
    pub owner: Owner,
    /// Their hash, in hexadecimal.
    pub blake3: String,
}

/// The document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Journal {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The cluster, as text since it does not fit a JSON number; null when its control file could
    /// not be read.
    pub system_identifier: Option<String>,
    /// The data directory, links resolved.
    pub pgdata: PathBuf,
    /// When, as the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What for, in words.
    pub what: String,
    /// How far it has come.
    pub state: State,
    /// The changes with the bytes from before and after.
    pub patch: Patch,
    /// Bytes of cut and removed files.
    pub kept: Vec<Kept>,
}

impl Journal {
    /// The number of the cluster.
    pub fn identifier(&self) -> Option<u64> {
        self.system_identifier.as_ref()?.parse().ok()
    }

    /// What was kept for a change.
    pub(crate) fn kept(&self, name: &str) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.file == name)
    }
}

/// The folder of one journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalFolder {
    path: PathBuf,
}

impl JournalFolder {
    /// A folder, which need not be there yet, or the journal file in it.
    pub fn new(path: &Path) -> Self {
        let folder = match path.file_name() {
            Some(name) if name == JOURNAL_FILE => path.parent().unwrap_or(path),
            _ => path,
        };
        JournalFolder {
            path: folder.to_path_buf(),
        }
    }

    /// The journal file.
    pub fn file(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file beside the journal.
    pub fn kept(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn unusable(&self, why: impl Into<String>) -> Error {
        Error::Journal {
            path: self.file(),
            why: why.into(),
        }
    }

    /// Makes the folder; one that already holds a journal is refused.
    pub(crate) fn create(&self, storage: &mut dyn Storage) -> Result<()> {
        let file = self.file();
        let found = storage.len(&file).map_err(Error::io("look for", &file))?;
        if found.is_some() {
            return Err(self.unusable("it is there already; name another directory"));
        }
        storage
            .create_folder(&self.path)
            .map_err(Error::io("create the directory", &self.path))?;
        // The folder's own name must last, or the journal is lost with it.
        let parent = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        storage
            .sync_folder(parent)
            .map_err(Error::io("sync", parent))
    }

    /// Takes away what a run left that could not write its journal, as on a disk that is full: the
    /// directory can be named again. What was there before stays; nothing where it was not there.
    pub(crate) fn give_up(&self, storage: &mut dyn Storage, were_there: Option<&[PathBuf]>) {
        let names = storage.names(&self.path).unwrap_or_default();
        let known = were_there.unwrap_or_default();
        for name in names.iter().filter(|name| !known.contains(name)) {
            // The failure that led here is what the user hears of.
            let _left = storage.remove(&self.path.join(name));
        }
        if were_there.is_none() {
            let _left = storage.remove_directory(&self.path);
        }
    }

    /// Reads the document.
    pub fn read(&self, storage: &dyn Storage) -> Result<Journal> {
        let file = self.file();
        let len = storage.len(&file).map_err(Error::io("read", &file))?;
        let len = len.ok_or_else(|| self.unusable("the file is not there"))?;
        if len > JOURNAL_BYTES_MAX {
            return Err(self.unusable("it is too long"));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        let read = storage
            .read_at(&file, 0, &mut bytes)
            .map_err(Error::io("read", &file))?;
        bytes.truncate(read);
        let journal: Journal = serde_json::from_slice(&bytes)
            .map_err(|error| self.unusable(format!("it is damaged ({error})")))?;
        if journal.schema != SCHEMA {
            return Err(self.unusable(format!("its schema is {}, not {SCHEMA}", journal.schema)));
        }
        Ok(journal)
    }

    /// Writes the document whole, or leaves the one that is there.
    pub(crate) fn write(&self, storage: &mut dyn Storage, journal: &Journal) -> Result<()> {
        let text =
            serde_json::to_vec_pretty(journal).map_err(|error| self.unusable(error.to_string()))?;
        if text.len() as u64 > JOURNAL_BYTES_MAX {
            return Err(self.unusable("it would be too long to be read again: heal less at once"));
        }
        let (next, file) = (self.path.join(NEXT_FILE), self.file());
        storage
            .create(&next, None)
            .and_then(|()| storage.write_at(&next, 0, &text))
            .and_then(|()| storage.sync(&next))
            .and_then(|()| storage.rename(&next, &file))
            .and_then(|()| storage.sync_folder(&self.path))
            .map_err(Error::io("write", &file))
    }

    /// Writes a file beside the journal that is to come, and makes it last. One that is there
    /// belongs to somebody else.
    pub(crate) fn save(&self, storage: &mut dyn Storage, file: &FileBeside) -> Result<()> {
        let path = self.path.join(&file.name);
        let found = storage.len(&path).map_err(Error::io("look for", &path))?;
        if found.is_some() {
            let why = format!("{} is there already; name another directory", file.name);
            return Err(self.unusable(why));
        }
        storage
            .create(&path, None)
            .and_then(|()| {
                let mut at = 0;
                file.content.each(&mut |bytes| {
                    storage.write_at(&path, at, bytes)?;
                    at += bytes.len() as u64;
                    Ok(())
                })
            })
            .and_then(|()| storage.sync(&path))
            .and_then(|()| storage.sync_folder(&self.path))
            .map_err(Error::io("write", &path))
    }

    /// Copies the bytes that a change will take away, and makes the copy last.
    pub(crate) fn keep(
        &self,
        storage: &mut dyn Storage,
        target: &FileChange<'_>,
    ) -> Result<Option<Kept>> {
        let Some(name) = target.change.kept() else {
            return Ok(None);
        };
        let offset = match target.change {
            Change::Cut { len, .. } => *len,
            _ => 0,
        };
        let copy = self.kept(name);
        if storage
            .len(&copy)
            .map_err(Error::io("look for", &copy))?
            .is_some()
        {
            return Err(self.unusable(format!("{name} is there already; name another directory")));
        }
        let end = storage
            .len(&target.file)
            .map_err(Error::io("examine", &target.file))?;
        let end = end
            .filter(|end| *end >= offset)
            .ok_or_else(|| Error::Changed {
                path: target.change.path().into(),
                why: "it is gone or shorter".into(),
            })?;
        let owner = storage
            .owner(&target.file)
            .map_err(Error::io("examine", &target.file))?;
        storage
            .create(&copy, None)
            .map_err(Error::io("write", &copy))?;
        let range = Range {
            offset,
            len: end - offset,
        };
        let hash = copy_range(storage, &target.file, range, &copy, 0)?;
        storage.sync(&copy).map_err(Error::io("sync", &copy))?;
        Ok(Some(Kept {
            file: name.to_owned(),
            path: target.change.path().into(),
            offset,
            len: range.len,
            owner,
            blake3: hash,
        }))
    }

    /// A kept file is whole.
    pub(crate) fn check_kept(&self, storage: &dyn Storage, kept: &Kept) -> Result<()> {
        let path = self.kept(&kept.file);
        let len = storage.len(&path).map_err(Error::io("read", &path))?;
        let all = Range {
            offset: 0,
            len: kept.len,
        };
        if len != Some(kept.len) || hash_of(storage, &path, all)? != kept.blake3 {
            return Err(self.unusable(format!("the kept file {} is missing or damaged", kept.file)));
        }
        Ok(())
    }
}

/// A run of bytes in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Copies bytes between two files, unsynced, and gives their hash.
pub(crate) fn copy_range(
    storage: &mut dyn Storage,
    from: &Path,
    range: Range,
    to: &Path,
    to_offset: u64,
) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; STEP_BYTES];
    let mut done = 0;
    while done < range.len {
        let step = usize::try_from(range.len - done)
            .unwrap_or(STEP_BYTES)
            .min(STEP_BYTES);
        let part = buffer.get_mut(..step).unwrap_or_default();
        let read = storage
            .read_at(from, range.offset + done, part)
            .map_err(Error::io("read", from))?;
        if read < step {
            return Err(shrunk(from));
        }
        hasher.update(part);
        storage
            .write_at(to, to_offset + done, part)
            .map_err(Error::io("write", to))?;
        done += step as u64;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// BLAKE3 of bytes in a file, in hexadecimal.
pub(crate) fn hash_of(storage: &dyn Storage, path: &Path, range: Range) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    each_step(storage, path, range, &mut |_, bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Hands out the bytes of a range in steps, each with its offset from the range's start. A file
/// that ends before gives fewer bytes.
pub(crate) fn each_step(
    storage: &dyn Storage,
    path: &Path,
    range: Range,
    each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; STEP_BYTES];
    let mut done = 0;
    while done < range.len {
        let step = usize::try_from(range.len - done)
            .unwrap_or(STEP_BYTES)
            .min(STEP_BYTES);
        let part = buffer.get_mut(..step).unwrap_or_default();
        let read = storage
            .read_at(path, range.offset + done, part)
            .map_err(Error::io("read", path))?;
        each(done, part.get(..read).unwrap_or_default())?;
        if read < step {
            break;
        }
        done += step as u64;
    }
    Ok(())
}

fn shrunk(path: &Path) -> Error {
    Error::Changed {
        path: path.display().to_string(),
        why: "it became shorter while it was read".into(),
    }
}
