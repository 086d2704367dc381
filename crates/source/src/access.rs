//! Whether a name leads to bytes: there, absent, or there and out of reach, which are never mixed
//! up.
//!
//! Whoever asks for a file learns of its own trouble; that nobody passes over it in silence, a
//! source keeps what it could not reach, and every run tells it at its end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Entry, EntryKind, Result, Source, SourceError};

/// Paths that are kept: where so many are, more may have failed.
pub const FAILURES_MAX: usize = 10_000;

/// What a name leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Presence {
    /// A regular file of so many bytes, or a directory that can be listed (then 0).
    There(u64),
    /// Nothing has the name.
    Missing,
    /// Something has the name, or nobody can know: it is neither health nor damage.
    Unreadable(SourceError),
}

impl Presence {
    /// Of a regular file.
    pub fn of_file(source: &dyn Source, path: &str) -> Self {
        source
            .len(path)
            .map_or_else(Presence::of_error, Presence::There)
    }

    /// Of a directory.
    pub fn of_directory(source: &dyn Source, path: &str) -> Self {
        source
            .list(path)
            .map_or_else(Presence::of_error, |_| Presence::There(0))
    }

    /// Of an entry of a listing of `directory`, which may be a link to a file.
    pub fn of_entry(source: &dyn Source, directory: &str, entry: &Entry) -> Self {
        match entry.kind {
            EntryKind::File => Presence::There(entry.len),
            EntryKind::Folder | EntryKind::Other => {
                Presence::of_file(source, &format!("{directory}/{}", entry.name))
            }
        }
    }

    fn of_error(error: SourceError) -> Self {
        if error.is_absent() {
            Presence::Missing
        } else {
            Presence::Unreadable(error)
        }
    }

    /// Nothing has the name.
    pub fn is_missing(&self) -> bool {
        *self == Presence::Missing
    }

    /// Why it is out of reach.
    pub fn trouble(&self) -> Option<&SourceError> {
        match self {
            Presence::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

/// What a source was asked for and could not reach, by path, with the first reason of each.
#[derive(Debug, Default)]
pub struct AccessLog {
    kept: Mutex<BTreeMap<String, SourceError>>,
}

impl AccessLog {
    /// Notes a failure, and hands the answer on.
    pub fn note<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer {
            self.keep(error);
        }
        answer
    }

    fn keep(&self, error: &SourceError) {
        if !error.is_out_of_reach() {
            return;
        }
        let mut kept = self.lock();
        if kept.len() < FAILURES_MAX && !kept.contains_key(&error.path) {
            kept.insert(error.path.clone(), error.clone());
        }
    }

    /// All of it, by path, up to [`FAILURES_MAX`].
    pub fn failures(&self) -> Vec<SourceError> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SourceError>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, SourceErrorKind};

    #[test]
    fn absent_is_not_out_of_reach() {
        let source = Memory::new("files").with("pg_xact/0000", *b"bits");
        source.make_unreadable("pg_xact/0001", SourceErrorKind::Denied);
        let file = |path| Presence::of_file(&source, path);
        assert_eq!(file("pg_xact/0000"), Presence::There(4));
        assert_eq!(file("pg_xact/0002"), Presence::Missing);
        assert!(file("pg_xact/0001").trouble().is_some());
        let paths: Vec<String> = source
            .unreadable()
            .into_iter()
            .map(|error| error.path)
            .collect();
        assert_eq!(paths, ["pg_xact/0001"]);
    }
}
