//! Cold: the server was restarted, its files were put out of the kernel's cache, and the disk's own
//! counter proves that what follows comes from the disk. In a virtual machine the cache of the host
//! stays out of reach.

use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fdatasync};

use crate::error::{Error, Result};
use crate::servers_of_arms::Device;

/// More files than this in a data directory are not looked at.
const FILES_MAX: usize = 5_000_000;

/// Bytes below this are told in kB.
const SMALL: u64 = 10 << 20;

/// A cold start, and the disk's counter at that moment.
#[derive(Debug, Clone)]
pub struct ColdStart {
    device: Option<Device>,
    read_before: Option<u64>,
}

impl ColdStart {
    /// Puts every file of a stopped cluster out of the kernel's cache, tablespaces included.
    pub(crate) fn empty_caches(pgdata: &Path) -> Result<()> {
        for file in files_below(pgdata) {
            let Ok(open) = std::fs::File::open(&file) else {
                continue;
            };
            // Only clean pages leave the cache.
            fdatasync(&open).map_err(|error| Error::io("sync", &file)(error.into()))?;
            fadvise(&open, 0, None, Advice::DontNeed)
                .map_err(|error| Error::io("drop from the cache", &file)(error.into()))?;
        }
        Ok(())
    }

    /// The disk's counter as it stands now.
    pub(crate) fn now(pgdata: &Path) -> Self {
        let device = Device::of(pgdata);
        let read_before = device.as_ref().and_then(Device::read_bytes);
        Self {
            device,
            read_before,
        }
    }

    /// What the disk has read since then, by its own count; `None` where there is no such count.
    pub fn read_bytes(&self) -> Option<u64> {
        let now = self.device.as_ref()?.read_bytes()?;
        now.checked_sub(self.read_before?)
    }

    /// `None` when the disk has read at least `bytes`, else why the run was not proven cold.
    pub fn doubt(&self, bytes: u64) -> Option<String> {
        Self::doubt_about(self.read_bytes(), bytes)
    }

    /// The same of what the disk had read at another moment.
    pub(crate) fn doubt_about(read: Option<u64>, bytes: u64) -> Option<String> {
        let (unit, bits) = match bytes {
            0..SMALL => ("kB", 10),
            _ => ("MB", 20),
        };
        match read {
            None => Some("not proven cold: the file system names no disk that counts".to_owned()),
            Some(read) if read < bytes => Some(format!(
                "not proven cold: the disk read {} {unit} of at least {} {unit}",
                read >> bits,
                bytes >> bits
            )),
            Some(_) => None,
        }
    }
}

/// Every file below a folder; the links of `pg_tblspc` are followed.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut left) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            match path.metadata() {
                Ok(found) if found.is_dir() => left.push(path),
                Ok(found) if found.is_file() && files.len() < FILES_MAX => files.push(path),
                _ => {}
            }
        }
    }
    files
}
