//! The files of `pg_xact`, `pg_multixact` and their kin as they lie on disk.

use pgclinic_format::StatusLog;
use pgclinic_source::{EntryKind, SourceErrorKind};

use crate::cluster::Cluster;
use crate::error::Trouble;

/// One file of a status log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusFile {
    /// The number in its name: its first page is 32 times that.
    pub segment: u64,
    /// From the root of the data directory.
    pub path: String,
    /// Bytes.
    pub len: u64,
}

impl Cluster {
    /// The files of a status log in the order of their numbers; none when the folder is not there.
    /// Names that the server passes over are left out.
    pub fn status_files(&self, log: StatusLog) -> Result<Vec<StatusFile>, Trouble> {
        let folder = log.folder();
        let entries = match self.source.list(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind == SourceErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Trouble::new(folder, error)),
        };
        let files = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::File);
        let mut files: Vec<StatusFile> = files
            .filter_map(|entry| {
                Some(StatusFile {
                    segment: log.segment_of(&entry.name, self.layout.major)?,
                    path: format!("{folder}/{}", entry.name),
                    len: entry.len,
                })
            })
            .collect();
        files.sort_by_key(|file| file.segment);
        Ok(files)
    }
}
