//! A base backup: where it began, and what its manifest says.
//!
//! The first start of a restored backup renames `backup_label` and leaves the manifest, which then
//! means nothing any more.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_format::Lsn;
use pgclinic_format::backup_label::BackupLabel;
use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::digest::{Algorithm, Digest};
use pgclinic_source::{Source, SourceError, SourceErrorKind, read_all};

/// The manifest's name.
pub const MANIFEST: &str = "backup_manifest";

/// Bytes of a manifest that are read: some two million files.
pub const MANIFEST_BYTES: u64 = 256 << 20;

/// Bytes that are summed at once.
const STEP: usize = 256 << 10;

/// The checksum of a file, as a manifest has it.
///
/// # Errors
///
/// The file cannot be read.
pub fn file_sum(
    source: &dyn Source,
    path: &str,
    algorithm: Algorithm,
) -> Result<Vec<u8>, SourceError> {
    let mut digest = Digest::new(algorithm);
    let mut buffer = vec![0; STEP];
    let mut offset = 0u64;
    loop {
        let read = source.read_at(path, offset, &mut buffer)?;
        digest.update(buffer.get(..read).unwrap_or_default());
        offset = offset.saturating_add(read as u64);
        if read < buffer.len() {
            return Ok(digest.finish());
        }
    }
}

/// Checksums of files of these lengths, made by several threads; of those that can be read. After
/// each file its length is handed to `goes_on`.
pub fn file_sums(
    source: &dyn Source,
    files: &[(&str, u64, Algorithm)],
    threads: NonZeroUsize,
    goes_on: &(dyn Fn(u64) -> bool + Sync),
) -> BTreeMap<String, Vec<u8>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let Some((path, bytes, algorithm)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Ok(sum) = file_sum(source, path, *algorithm) {
                own.push(((*path).to_owned(), sum));
            }
            if !goes_on(*bytes) {
                break;
            }
        }
        own
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.get()).map(|_| scope.spawn(work)).collect();
        let mut sums: BTreeMap<_, _> = work().into_iter().collect();
        for other in others {
            let own = other.join();
            sums.extend(own.expect("a thread that sums files does not panic"));
        }
        sums
    })
}

/// `backup_manifest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ManifestState {
    /// Read.
    Read(BackupManifest),
    /// It is there and no manifest.
    Wrong(String),
    /// It cannot be read.
    Unreadable(String),
}

impl ManifestState {
    /// Of a backup that no server has started on; `None` where there is none.
    pub(crate) fn read(source: &dyn Source) -> Option<Self> {
        let bytes = match read_all(source, MANIFEST, MANIFEST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == SourceErrorKind::NotFound => return None,
            Err(error) => return Some(ManifestState::Unreadable(error.why)),
        };
        Some(match BackupManifest::parse(&bytes) {
            Ok(manifest) => ManifestState::Read(manifest),
            Err(why) => ManifestState::Wrong(why),
        })
    }
}

/// Where a backup began: a place in the WAL, and its timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BackupStart {
    pub(crate) lsn: Lsn,
    pub(crate) timeline: Option<u32>,
}

impl BackupStart {
    /// Of the backup with this label, and of the one that it builds on.
    pub(crate) fn of_label(label: &BackupLabel) -> (Self, Option<Self>) {
        let start = BackupStart {
            lsn: label.start,
            timeline: label.timeline,
        };
        let follows = label.follows.map(|follows| BackupStart {
            lsn: follows.start,
            timeline: follows.timeline,
        });
        (start, follows)
    }
}

impl std::fmt::Display for BackupStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.timeline {
            Some(timeline) => write!(f, "{} of timeline {timeline}", self.lsn),
            None => self.lsn.fmt(f),
        }
    }
}
