//! What could not be read, where and why.

use std::fmt;
use std::io;

/// The outcome of every reading call.
pub type Result<T> = std::result::Result<T, SourceError>;

/// What could not be read, where and why; `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The path as the caller gave it, relative to the root of the source; `""` is the root itself.
    pub path: String,
    /// The class of trouble, for programs.
    pub kind: SourceErrorKind,
    /// The reason in words, for people; lower case, without a full stop.
    pub why: String,
}

/// The classes of trouble a caller may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceErrorKind {
    /// Nothing has this name, or a link on the way leads nowhere.
    NotFound,
    /// The operating system does not permit it.
    Denied,
    /// Something else than what was asked for has this name: a folder, FIFO, socket or device instead of a
    /// regular file, or a file instead of a folder.
    NotRegular,
    /// The file ended before the bytes that were expected; it may have been cut while it was read.
    Shrunk,
    /// The source will not do this: a path that leaves the tree, a file above the caller's limit.
    Refused,
    /// Any other failure below us: a bad disk, links in a circle, a broken network.
    Io,
}

impl SourceError {
    /// An error from its three parts.
    pub fn new(path: impl Into<String>, kind: SourceErrorKind, why: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind,
            why: why.into(),
        }
    }

    /// Sorts an error of the operating system into its class.
    pub fn from_io(path: &str, error: &io::Error) -> Self {
        use io::ErrorKind as E;
        let (kind, why) = match error.kind() {
            E::NotFound | E::NotADirectory => (
                SourceErrorKind::NotFound,
                "no such file or folder".to_owned(),
            ),
            E::PermissionDenied => (SourceErrorKind::Denied, "permission denied".to_owned()),
            E::IsADirectory => (SourceErrorKind::NotRegular, "it is a folder".to_owned()),
            _ => (SourceErrorKind::Io, error.to_string()),
        };
        Self::new(path, kind, why)
    }

    pub(crate) fn not_found(path: &str) -> Self {
        Self::new(path, SourceErrorKind::NotFound, "no such file or folder")
    }

    pub(crate) fn not_regular(path: &str, seen: &str) -> Self {
        Self::new(
            path,
            SourceErrorKind::NotRegular,
            format!("it is {seen}, not a regular file"),
        )
    }

    pub(crate) fn not_folder(path: &str) -> Self {
        Self::new(path, SourceErrorKind::NotRegular, "it is not a folder")
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "the root folder"
        } else {
            &self.path
        };
        write!(f, "cannot read {path}: {}", self.why)
    }
}

impl std::error::Error for SourceError {}
