//! Where WAL lies: the segments of several directories by number, each perhaps in several copies.
//!
//! ```text
//! 000000010000000000000007            a segment
//! 000000010000000000000007.gz         compressed, also .lz4 and .zst
//! 000000010000000000000007.partial    of a timeline that was left, or not received whole; also .gz.partial
//! 00000002.history                    where timeline 2 begins
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{History, Shape};
use pgclinic_source::{Entry, EntryKind, Result, Source, decompressed};

use crate::error::ReadGap;
use crate::wal::files::{HISTORY_BYTES, Timelines, WalFiles, history_name};

/// The ends of names of compressed files.
const COMPRESSED: [&str; 4] = [".gz", ".lz4", ".zst", ".zstd"];

/// A directory with WAL: a `pg_wal`, or an archive.
#[derive(Clone)]
pub struct WalDirectory {
    /// How the user named it.
    pub name: String,
    /// Where its bytes come from.
    pub source: Arc<dyn Source>,
    /// The directory in the source; empty for its root.
    pub directory: String,
}

impl WalDirectory {
    /// The root of a source: the directory of an archive.
    pub fn archive(name: impl Into<String>, source: Arc<dyn Source>) -> Self {
        WalDirectory {
            name: name.into(),
            source,
            directory: String::new(),
        }
    }

    /// The `pg_wal` of a cluster or a backup.
    pub fn pg_wal(name: impl Into<String>, source: Arc<dyn Source>) -> Self {
        WalDirectory {
            directory: "pg_wal".into(),
            ..WalDirectory::archive(name, source)
        }
    }

    fn path(&self, name: &str) -> String {
        match self.directory.as_str() {
            "" => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }
}

/// A file that holds a segment, or a part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SegmentCopy {
    /// Those that are more likely whole come first.
    doubt: Doubt,
    /// The directory.
    place: usize,
    pub(super) path: String,
    pub(super) timeline: u32,
    pub(super) is_compressed: bool,
}

impl SegmentCopy {
    /// It lies in the first directory, whole and as the server wrote it.
    pub(super) fn is_own(&self) -> bool {
        self.place == 0 && self.doubt == Doubt::None
    }

    /// The cluster's server wrote it, though it may have been truncated since.
    pub(super) fn is_of_server(&self) -> bool {
        self.place == 0 && matches!(self.doubt, Doubt::None | Doubt::OtherLength)
    }
}

/// A copy of a segment that may be read on the way through the timelines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) copy: &'a SegmentCopy,
    /// Of an older timeline than the segment's: what it holds counts up to here.
    pub(super) until: Option<Lsn>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Doubt {
    None,
    Compressed,
    OtherLength,
    Partial,
}

/// All segments and histories.
pub(super) struct WalCopies {
    directories: Vec<WalDirectory>,
    segments: BTreeMap<u64, Vec<SegmentCopy>>,
    /// The histories of all directories.
    pub(super) histories: WalFiles,
    /// What could not be listed or read.
    pub(super) troubles: Vec<ReadGap>,
}

impl WalCopies {
    pub(super) fn list(directories: Vec<WalDirectory>, shape: &Shape) -> Self {
        let mut copies = WalCopies {
            directories,
            segments: BTreeMap::new(),
            histories: WalFiles::default(),
            troubles: Vec::new(),
        };
        for place in 0..copies.directories.len() {
            copies.list_one(place, shape);
        }
        for own in copies.segments.values_mut() {
            own.sort();
        }
        copies
    }

    fn list_one(&mut self, place: usize, shape: &Shape) {
        let Some(directory) = self.directories.get(place).cloned() else {
            return;
        };
        match directory.source.list(&directory.directory) {
            Ok(entries) => {
                for entry in entries {
                    self.take_entry(place, &directory, &entry, shape);
                }
            }
            Err(error) => self.troubles.push(ReadGap::new(&directory.name, error)),
        }
    }

    fn take_entry(&mut self, place: usize, directory: &WalDirectory, entry: &Entry, shape: &Shape) {
        if entry.kind != EntryKind::File {
            return;
        }
        let (name, is_partial) = match entry.name.strip_suffix(".partial") {
            Some(name) => (name, true),
            None => (entry.name.as_str(), false),
        };
        let uncompressed = COMPRESSED.iter().find_map(|end| name.strip_suffix(end));
        let is_compressed = uncompressed.is_some();
        let name = uncompressed.unwrap_or(name);
        let path = directory.path(&entry.name);
        if let Some(timeline) = history_name(name) {
            self.read_history(directory, timeline, &path);
        }
        let Some((timeline, number)) = shape.parse_name(name) else {
            return;
        };
        let doubt = match (is_partial, is_compressed) {
            (true, _) => Doubt::Partial,
            (false, true) => Doubt::Compressed,
            _ if entry.len != u64::from(shape.segment_bytes) => Doubt::OtherLength,
            _ => Doubt::None,
        };
        let copy = SegmentCopy {
            doubt,
            place,
            path,
            timeline,
            is_compressed,
        };
        self.segments.entry(number).or_default().push(copy);
    }

    /// The first one that can be read counts.
    fn read_history(&mut self, directory: &WalDirectory, timeline: u32, path: &str) {
        if self.histories.history(timeline).is_some() {
            return;
        }
        match history_text(directory, path) {
            Ok(text) => {
                let history = History::parse(timeline, &text);
                self.histories.histories.insert(timeline, history);
            }
            Err(error) => self.troubles.push(ReadGap::new(path, error)),
        }
    }

    /// What the cluster's own segments tell of timelines without a history.
    pub(super) fn take_histories_from_wal(&mut self, own: &WalFiles) {
        self.histories.histories_from_wal = own.histories_from_wal.clone();
    }

    /// The copies of a segment of this timeline.
    fn of(&self, number: u64, timeline: u32) -> impl Iterator<Item = &SegmentCopy> {
        let all = self.segments.get(&number).into_iter().flatten();
        all.filter(move |copy| copy.timeline == timeline)
    }

    /// The copies of a segment, the likeliest first: those of the newest timeline that has begun by
    /// then, and after them those of the timelines before, which hold its beginning.
    pub(super) fn candidates(&self, number: u64, timelines: &Timelines) -> Vec<Candidate<'_>> {
        let Some(expected) = timelines.expected(number) else {
            return Vec::new();
        };
        let own = self.of(number, expected);
        let mut all: Vec<_> = own.map(|copy| Candidate { copy, until: None }).collect();
        let older = (1..expected).rev();
        for timeline in older.filter(|timeline| timelines.passes(*timeline)) {
            let left = timelines.left(timeline, &self.histories);
            let until = left.or(Some(Lsn(0)));
            let own = self.of(number, timeline);
            all.extend(own.map(|copy| Candidate { copy, until }));
        }
        all
    }

    /// Some directory has a file of the segment on the way.
    pub(super) fn has(&self, number: u64, timelines: &Timelines) -> bool {
        let all = self.segments.get(&number).into_iter().flatten();
        let expected = timelines.expected(number);
        all.into_iter()
            .any(|copy| timelines.passes(copy.timeline) && Some(copy.timeline) <= expected)
    }

    /// Of segments that the first directory has in full length, no other copies count.
    pub(super) fn prefer_own(&mut self) {
        for all in self.segments.values_mut() {
            let own = all.iter().filter(|copy| copy.is_own());
            let own: Vec<u32> = own.map(|copy| copy.timeline).collect();
            all.retain(|copy| copy.is_own() || !own.contains(&copy.timeline));
        }
    }

    pub(super) fn directory_of(&self, copy: &SegmentCopy) -> Option<&WalDirectory> {
        self.directories.get(copy.place)
    }

    /// For a message: the file, and where it lies.
    pub(super) fn words(&self, copy: &SegmentCopy) -> String {
        let directory = self.directory_of(copy);
        let name = directory.map_or("", |directory| directory.name.as_str());
        match copy.path.rsplit_once('/') {
            Some((_, file)) => format!("{file} in {name}"),
            None => format!("{} in {name}", copy.path),
        }
    }
}

fn history_text(directory: &WalDirectory, path: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let file = decompressed(&directory.source, path)?;
    let read = file.take(HISTORY_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| pgclinic_source::SourceError::from_io(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
