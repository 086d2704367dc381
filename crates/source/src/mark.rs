//! Which files a source is made of, so that another copy that was put in their place is told from
//! them.
//!
//! The inode stays while a server writes to a file, when a folder is moved on its file system, and
//! when that is mounted anew. The number of the device does not, and is left out. A number that was
//! free is given to a new file again: where the file system keeps it, the time at which a file was
//! made tells them apart.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::SourceSpec;
use crate::tar::archives_at;

/// Files of a folder that nobody makes anew, neither a server nor its tools: they write into them.
const STEADY: [&str; 2] = ["global/pg_control", "PG_VERSION"];

/// A file as its file system knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileMark {
    /// Its path.
    pub path: String,
    /// Its number on its file system.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system keeps that.
    pub born: Option<u64>,
    /// Of a file that nobody writes to any more, such as an archive.
    pub settled: Option<Settled>,
}

/// A file that was written to its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// Its length in bytes.
    pub len: u64,
    /// When it was written to, in seconds since 1970 and nanoseconds of that second.
    pub modified: (i64, i64),
}

impl FileMark {
    /// By what was noted of both, this may be that file.
    pub fn may_be(&self, other: &FileMark) -> bool {
        let born = self.born.zip(other.born);
        self.path == other.path
            && self.inode == other.inode
            && self.settled == other.settled
            && born.is_none_or(|(own, theirs)| own == theirs)
    }
}

/// The marks of a source whose bytes come out of files here; none of one that has no such files, or
/// of files that cannot be seen.
pub fn marks_of(spec: &SourceSpec) -> Vec<FileMark> {
    match spec {
        SourceSpec::DataDirectory { path } => {
            let files = STEADY.iter();
            files.filter_map(|name| mark(&path.join(name))).collect()
        }
        SourceSpec::TarBackup { path, .. } => {
            let archives = archives_at(path).unwrap_or_default();
            archives.iter().filter_map(|own| settled(own)).collect()
        }
        SourceSpec::Chain { links, .. } => links.iter().flat_map(marks_of).collect(),
        SourceSpec::Overlay { under, .. }
        | SourceSpec::Replayed { under }
        | SourceSpec::Limit { under, .. } => marks_of(under),
        SourceSpec::SingleFile { .. } | SourceSpec::Memory { .. } | SourceSpec::Server { .. } => {
            Vec::new()
        }
    }
}

fn mark(path: &Path) -> Option<FileMark> {
    let seen = path.metadata().ok()?;
    Some(FileMark {
        path: path.display().to_string(),
        inode: seen.ino(),
        born: born(&seen),
        settled: None,
    })
}

fn settled(path: &Path) -> Option<FileMark> {
    let seen = path.metadata().ok()?;
    let settled = Settled {
        len: seen.len(),
        modified: (seen.mtime(), seen.mtime_nsec()),
    };
    Some(FileMark {
        settled: Some(settled),
        ..mark(path)?
    })
}

fn born(seen: &Metadata) -> Option<u64> {
    let since = seen.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}
