//! Files in memory, for tests and builders.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    AccessLog, Entry, EntryKind, Result, Source, SourceError, SourceErrorKind, SourceSpec, path,
};

type Files = BTreeMap<String, Arc<[u8]>>;

/// A tree of files in memory. Folders exist as far as files lie in them; the root always does.
#[derive(Debug)]
pub struct Memory {
    spec: SourceSpec,
    files: RwLock<Files>,
    refused: RwLock<BTreeMap<String, SourceErrorKind>>,
    log: AccessLog,
}

impl Memory {
    /// An empty tree; `name` appears in the spec only.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            spec: SourceSpec::Memory { name: name.into() },
            files: RwLock::default(),
            refused: RwLock::default(),
            log: AccessLog::default(),
        }
    }

    /// The same tree with one more file, for building in one expression.
    #[must_use]
    pub fn with(self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.insert(path, bytes);
        self
    }

    /// Puts a file in place, over what had this path before.
    ///
    /// # Panics
    /// When no source accepts the path: that is a mistake of the caller, not of the data.
    pub fn insert(&self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        let path = path.into();
        assert!(
            !path.is_empty() && path::check(&path).is_ok(),
            "a file in memory needs a relative path, not {path:?}"
        );
        self.files_mut().insert(path, bytes.into().into());
    }

    /// Takes a file away and says whether it was there.
    pub fn remove(&self, path: &str) -> bool {
        self.files_mut().remove(path).is_some()
    }

    /// From now on the path, and all below it, is there and cannot be read; a listing still shows
    /// what lies in it as files.
    pub fn make_unreadable(&self, path: impl Into<String>, kind: SourceErrorKind) {
        let mut refused = self.refused.write().unwrap_or_else(PoisonError::into_inner);
        refused.insert(path.into(), kind);
    }

    fn must_be_readable(&self, path: &str) -> Result<()> {
        let refused = self.refused.read().unwrap_or_else(PoisonError::into_inner);
        let mut refused = refused.iter();
        let own = refused.find(|(own, _)| *own == path || path::below(path, own).is_some());
        self.log.note(own.map_or(Ok(()), |(_, kind)| {
            Err(SourceError::new(path, *kind, "it was made unreadable"))
        }))
    }

    fn files(&self) -> RwLockReadGuard<'_, Files> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn files_mut(&self) -> RwLockWriteGuard<'_, Files> {
        self.files.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, path: &str) -> Result<Arc<[u8]>> {
        path::check(path)?;
        self.must_be_readable(path)?;
        let files = self.files();
        if let Some(bytes) = files.get(path) {
            return Ok(Arc::clone(bytes));
        }
        let is_folder = path.is_empty() || below(&files, path).next().is_some();
        Err(if is_folder {
            SourceError::not_regular(path, "a directory")
        } else {
            SourceError::not_found(path)
        })
    }
}

/// The files below `folder` with their paths from there.
fn below<'a>(files: &'a Files, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a Arc<[u8]>)> {
    let start = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    files
        .range(start..)
        .map_while(move |(path, bytes)| Some((path::below(path, folder)?, bytes)))
}

impl Source for Memory {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        path::check(folder)?;
        self.must_be_readable(folder)?;
        let files = self.files();
        if files.contains_key(folder) {
            return Err(SourceError::not_folder(folder));
        }
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        for (rest, bytes) in below(&files, folder) {
            let (name, entry) = match rest.split_once('/') {
                Some((name, _)) => (
                    name,
                    Entry {
                        name: name.to_owned(),
                        kind: EntryKind::Folder,
                        len: 0,
                    },
                ),
                None => (
                    rest,
                    Entry {
                        name: rest.to_owned(),
                        kind: EntryKind::File,
                        len: length(bytes),
                    },
                ),
            };
            entries.entry(name).or_insert(entry);
        }
        if entries.is_empty() && !folder.is_empty() {
            return Err(SourceError::not_found(folder));
        }
        Ok(entries.into_values().collect())
    }

    fn len(&self, path: &str) -> Result<u64> {
        Ok(length(&self.file(path)?))
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let bytes = self.file(path)?;
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| bytes.get(start..))
            .unwrap_or_default();
        let count = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.log.failures()
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
