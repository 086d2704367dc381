//! What could not be read, where and why.

use std::fmt;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

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
    /// Nothing has this name, or a link to a directory on the way leads nowhere.
    NotFound,
    /// A symbolic link has this name, and what it leads to is not there.
    Dangling,
    /// The limit on open files is reached, of this process or of the machine.
    Exhausted,
    /// The operating system does not permit it.
    Denied,
    /// Something else than what was asked for has this name: a folder, FIFO, socket or device
    /// instead of a regular file, or a file instead of a folder, here or on the way.
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
        let errno = Errno::from_io_error(error);
        if let Some(why) = errno.and_then(limit_reached) {
            return Self::new(path, SourceErrorKind::Exhausted, why);
        }
        let (kind, why) = match error.kind() {
            E::NotFound => (
                SourceErrorKind::NotFound,
                "no such file or directory".to_owned(),
            ),
            // Whether the name was ever there cannot be known: something stands where its directory
            // should.
            E::NotADirectory => (
                SourceErrorKind::NotRegular,
                "a part of its path is not a directory".to_owned(),
            ),
            E::PermissionDenied => (SourceErrorKind::Denied, "permission denied".to_owned()),
            E::IsADirectory => (SourceErrorKind::NotRegular, "it is a directory".to_owned()),
            _ => (SourceErrorKind::Io, error.to_string()),
        };
        Self::new(path, kind, why)
    }

    /// Nothing has the name: the only answer that may be taken for damage, where a witness says
    /// that it should be there.
    pub fn is_absent(&self) -> bool {
        self.kind == SourceErrorKind::NotFound
    }

    /// Something has the name, or nobody can know, and its bytes could not be had: neither health
    /// nor damage.
    pub fn is_out_of_reach(&self) -> bool {
        use SourceErrorKind as K;
        match self.kind {
            K::Dangling | K::Exhausted | K::Denied | K::NotRegular | K::Io => true,
            K::NotFound | K::Shrunk | K::Refused => false,
        }
    }

    pub(crate) fn not_found(path: &str) -> Self {
        Self::new(path, SourceErrorKind::NotFound, "no such file or directory")
    }

    pub(crate) fn not_regular(path: &str, seen: &str) -> Self {
        Self::new(
            path,
            SourceErrorKind::NotRegular,
            format!("it is {seen}, not a regular file"),
        )
    }

    pub(crate) fn not_folder(path: &str) -> Self {
        Self::new(path, SourceErrorKind::NotRegular, "it is not a directory")
    }
}

/// What to say of a limit on open files, with its number where that is the process's own.
fn limit_reached(errno: Errno) -> Option<String> {
    match errno {
        Errno::MFILE => Some(match open_files_max() {
            Some(max) => {
                format!("too many open files: the limit of this process is {max} (ulimit -n)")
            }
            None => "too many open files for this process (ulimit -n)".to_owned(),
        }),
        Errno::NFILE => Some("too many open files on this machine (fs.file-max)".to_owned()),
        _ => None,
    }
}

/// So many files may be open in this process; nothing where there is no limit.
pub(crate) fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "the root directory"
        } else {
            &self.path
        };
        write!(f, "cannot read {path}: {}", self.why)
    }
}

impl std::error::Error for SourceError {}
