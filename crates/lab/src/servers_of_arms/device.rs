//! The disk below a folder, and its own count of what was read and written
//! (`Documentation/block/stat.rst` of Linux).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes in a sector of the kernel's counters, whatever the disk has.
const SECTOR_BYTES: u64 = 512;

/// A block device that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// As the kernel calls it: `nvme0n1p2`.
    pub name: String,
    stat: PathBuf,
}

impl Device {
    /// The device that holds `folder`; `None` where the file system names none (overlay, network,
    /// memory).
    pub fn of(folder: &Path) -> Option<Self> {
        let number = std::fs::metadata(folder).ok()?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
            .canonicalize()
            .ok()?;
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let stat = folder.join("stat");
        stat.exists().then_some(Self { name, stat })
    }

    /// The whole disk below a partition: `nvme0n1`; a disk itself is its own.
    pub fn disk(&self) -> String {
        let folder = self.stat.parent().unwrap_or(&self.stat);
        let is_partition = folder.join("partition").exists();
        let above = folder.parent().and_then(Path::file_name);
        let disk = above.filter(|_| is_partition);
        disk.map_or_else(
            || self.name.clone(),
            |disk| disk.to_string_lossy().into_owned(),
        )
    }

    /// Bytes read since boot.
    pub fn read_bytes(&self) -> Option<u64> {
        self.sectors(2)
    }

    /// Bytes written since boot.
    pub fn written_bytes(&self) -> Option<u64> {
        self.sectors(6)
    }

    fn sectors(&self, field: usize) -> Option<u64> {
        let text = std::fs::read_to_string(&self.stat).ok()?;
        let sectors: u64 = text.split_whitespace().nth(field)?.parse().ok()?;
        sectors.checked_mul(SECTOR_BYTES)
    }
}
