//! The files of `pg_xact`, `pg_multixact` and their kin as they lie on disk.

use pgclinic_format::StatusLog;
use pgclinic_source::{Entry, Presence, SourceErrorKind};

use crate::cluster::Cluster;
use crate::error::ReadGap;
use crate::transaction_log::PAGES_PER_FILE;

/// One file of a status log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusFile {
    /// The number in its name: its first page is 32 times that.
    pub segment: u64,
    /// From the root of the data directory.
    pub path: String,
    /// Bytes; those of a full file where it is out of reach.
    pub len: u64,
    /// Why it is out of reach, though it is there.
    pub trouble: Option<ReadGap>,
}

impl Cluster {
    /// The files of a status log in the order of their numbers; none when the folder is not there.
    /// Names that the server passes over are left out.
    pub fn status_files(&self, log: StatusLog) -> Result<Vec<StatusFile>, ReadGap> {
        let folder = log.folder();
        let entries = match self.source.list(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind == SourceErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ReadGap::new(folder, error)),
        };
        let found = entries.iter();
        let mut files: Vec<StatusFile> = found
            .filter_map(|entry| self.status_file(log, entry))
            .collect();
        files.sort_by_key(|file| file.segment);
        Ok(files)
    }

    fn status_file(&self, log: StatusLog, entry: &Entry) -> Option<StatusFile> {
        let folder = log.folder();
        let segment = log.segment_of(&entry.name, self.layout.major)?;
        let full = PAGES_PER_FILE.saturating_mul(u64::from(self.build.block_size));
        let (len, trouble) = match Presence::of_entry(self.source.as_ref(), folder, entry) {
            Presence::There(len) => (len, None),
            Presence::Missing => return None,
            Presence::Unreadable(error) => (full, Some(ReadGap::from(&error))),
        };
        Some(StatusFile {
            segment,
            path: format!("{folder}/{}", entry.name),
            len,
            trouble,
        })
    }
}
