//! A data directory, or any folder, on a local disk.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::error::open_files_max;
use crate::footprints::Footprints;
use crate::open_files::OpenFiles;
use crate::{
    AccessLog, Entry, Range, Result, Source, SourceError, SourceErrorKind, SourceSpec, folder, path,
};

/// A folder of the operating system. Only regular files are opened, never for writing, and links
/// are followed.
///
/// A file stays open for a while after it was read; [`Source::len`] notices when its name leads to
/// another one.
pub struct DataDirectory {
    spec: SourceSpec,
    root: OwnedFd,
    open_files: OpenFiles,
    log: AccessLog,
    /// Where the page cache is somebody else's.
    footprints: Option<Footprints>,
}

impl DataDirectory {
    /// Opens the folder; whether it holds a cluster is not looked at.
    pub fn open(path: &Path) -> Result<Self> {
        let root = folder::open_root(path)?;
        let spec = SourceSpec::DataDirectory {
            path: path.to_owned(),
        };
        Ok(Self {
            spec,
            root,
            open_files: OpenFiles::within_limit(open_files_max()),
            log: AccessLog::default(),
            footprints: None,
        })
    }

    /// The same for a folder that a server works with: what reading brings into the system's page
    /// cache goes out again, and what the server has there stays.
    pub fn open_beside_a_server(path: &Path) -> Result<Self> {
        Ok(Self {
            footprints: Some(Footprints::default()),
            ..Self::open(path)?
        })
    }

    fn file(&self, path: &str) -> Result<Arc<File>> {
        path::check(path)?;
        if let Some(file) = self.open_files.get(path) {
            return Ok(file);
        }
        let (file, identity) = self.within_limit(|| folder::open_file(&self.root, path))?;
        if self.footprints.is_some() {
            Footprints::prepare(&file);
        }
        let file = Arc::new(file);
        self.open_files.keep(path, identity, &file);
        Ok(file)
    }
}

/// Tries while other threads hold the last open files, which each does for one read only.
const TRIES_MAX: usize = 1000;

impl DataDirectory {
    /// Opens by `open`; at the limit on open files, idle ones are closed and it is tried again.
    fn within_limit<T>(&self, open: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 1..TRIES_MAX {
            match open() {
                Err(error) if error.kind == SourceErrorKind::Exhausted => {
                    if !self.open_files.close_idle() {
                        std::thread::yield_now();
                    }
                }
                answer => return answer,
            }
        }
        open()
    }

    fn read(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let file = self.file(path)?;
        let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let mut read = || read_full(&file, offset, buf);
        let read = match &self.footprints {
            None => read(),
            Some(footprints) => footprints.reading((&file, path), (offset, len), read),
        };
        read.map_err(|error| SourceError::from_io(path, &error))
    }
}

impl Source for DataDirectory {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        path::check(folder)?;
        self.log
            .note(self.within_limit(|| folder::list(&self.root, folder)))
    }

    fn len(&self, path: &str) -> Result<u64> {
        path::check(path)?;
        let (len, identity) = self.log.note(folder::stat_file(&self.root, path))?;
        self.open_files.forget_unless(path, identity);
        Ok(len)
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.log.note(self.read(path, offset, buf))
    }

    fn prefetch(&self, ranges: &[Range]) {
        for range in ranges {
            let Some(len) = NonZeroU64::new(range.len) else {
                continue;
            };
            if let Ok(file) = self.file(&range.path) {
                if let Some(footprints) = &self.footprints {
                    footprints.prefetch(&file, &range.path, range.offset, range.len);
                    continue;
                }
                let last = range.offset.saturating_add(range.len - 1);
                if is_in_memory(&file, range.offset) && is_in_memory(&file, last) {
                    continue;
                }
                // Advice: a file system that does not take it reads as well without.
                let _ = fadvise(&*file, range.offset, Some(len), Advice::WillNeed);
            }
        }
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.log.failures()
    }
}

/// The byte could be read without the disk: then advice would cost and gain nothing. Where the
/// system cannot tell, it says no.
fn is_in_memory(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    preadv2(file, &mut into, offset, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == 1)
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_full(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let wanted = u64::try_from(buf.len()).unwrap_or(u64::MAX);
    // The kernel calls an offset that does not fit its signed type an error; to us it lies past
    // every end.
    if offset
        .checked_add(wanted)
        .is_none_or(|end| i64::try_from(end).is_err())
    {
        return Ok(0);
    }
    let mut filled = 0usize;
    while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
