//! Checks of level `pages` while files pass by once: archives on their way through the
//! decompressor, `BASE_BACKUP` on its way over the network. No disk holds them.
//!
//! ```text
//! stream ─► sieve: every page, nameless ─┬─ quiet: counted, shown as zeros
//!             │                          └─ suspect: kept ─► looked at again, where somebody can be asked
//!             └─ catalogs, maps, status files, WAL, what says what the backup is: kept whole
//! all of it ─► StreamedBackup ─► the walker, which names what was kept and judges it by all its rules
//! ```
//!
//! Names are known only when everything has passed, as files come in the order of folders. What is
//! kept is judged by the same walker as everywhere, so that the same damage gives the same
//! findings.

mod absent;
mod again;
mod catalogs;
mod sieve;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pgclinic_cluster::{
    Build, Cluster, DatabasesOfServer, MANIFEST, MANIFEST_BYTES, OpenError, OpenOptions,
    RelationFileName, StreamedFiles,
};
use pgclinic_format::digest::{Algorithm, Digest};
use pgclinic_format::{BlockNo, Layout, Oid, StatusLog, oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{CheckDocument, Coverage, Level, NotChecked, Verdict};
use pgclinic_model::plural;
use pgclinic_scan::{
    Cursor, InternalFault, StreamConsumer, StreamEnd, StreamFileEnd, StreamPages, StreamWindow,
    scan_stream,
};
use pgclinic_source::tar::{Archives, StreamEntry, TarStream};
use pgclinic_source::{SourceError, StreamedBackup};

use crate::walker::{CheckOptions, check_cluster};
use sieve::{FileSieve, Tally};

pub use absent::{Absent, AbsentFile};
pub use again::look_again;
pub use catalogs::fetch_catalogs;

/// `FirstNormalObjectId`: files below it are of catalogs, unless they were rewritten.
const FIRST_NORMAL: u32 = 16384;
/// `pg_largeobject` and its index: no name stands in them, and they may be as large as any table.
const LARGE_OBJECTS: [Oid; 2] = [oid::PG_LARGEOBJECT, oid::PG_LARGEOBJECT_LOID_PN_INDEX];
/// A rewritten catalog gets a number like any table; small files are kept for that, up to so many
/// bytes together. What is no relation's file is counted apart.
const SMALL_BYTES: u64 = 1 << 20;
const SMALL_TOGETHER: u64 = 256 << 20;
/// Control file, maps, versions and label are kept however much was kept before them, as they may
/// come last. None is longer.
const ESSENTIAL_BYTES: u64 = 64 << 10;

/// Whether pages carry checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageSums {
    /// They do.
    On,
    /// They do not.
    Off,
    /// Nobody said so: the control file comes last. A page without a checksum is passed over, a
    /// wrong one kept.
    Unknown,
}

/// What must be known before anything comes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sizes.
    pub build: Build,
    /// The major's row.
    pub layout: &'static Layout,
    /// Checksums.
    pub sums: PageSums,
    /// Suspects that are kept.
    pub suspects_max: usize,
}

/// A page that looked wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspect {
    /// Its file.
    pub path: String,
    /// Where in the file.
    pub offset: u64,
    /// Its number in the fork.
    pub block: u32,
}

/// What was seen on the way.
#[derive(Debug)]
pub struct StreamCheck {
    shape: Shape,
    /// Suspects that are kept.
    pub suspects: Vec<Suspect>,
    /// Suspects beyond them, which nobody can judge any more.
    pub suspects_lost: u64,
    /// Pages without a checksum, where it was not known whether they have one.
    pub unsummed_pages: u64,
    /// Pages that are shown as zeros and were none.
    pages_as_zeros: u64,
    /// Checksums of files, for the manifest.
    sums: BTreeMap<String, (Algorithm, Vec<u8>)>,
    small_relations: SmallFiles,
    small_others: SmallFiles,
    /// Everything has passed.
    is_whole: bool,
    /// Bytes of pages that are shown as zeros, though nobody examined them: we failed there.
    unexamined_bytes: u64,
    /// What is not there, or was not looked at.
    pub not_checked: Vec<NotChecked>,
    /// As in [`StreamedFiles`].
    pub databases: Option<DatabasesOfServer>,
    fetched: BTreeSet<String>,
    /// As in [`StreamedFiles`].
    pub without_file: BTreeMap<(Oid, Oid), String>,
}

/// Small files that are kept, as long as there is room for them.
#[derive(Debug)]
struct SmallFiles {
    left: u64,
}

impl SmallFiles {
    /// There is room for one more.
    fn keep(&mut self, bytes: u64) -> bool {
        let is_kept = bytes <= SMALL_BYTES.min(self.left);
        if is_kept {
            self.left -= bytes;
        }
        is_kept
    }
}

impl StreamCheck {
    /// Nothing has passed yet.
    pub fn new(shape: Shape) -> Self {
        StreamCheck {
            shape,
            suspects: Vec::new(),
            suspects_lost: 0,
            unsummed_pages: 0,
            pages_as_zeros: 0,
            sums: BTreeMap::new(),
            small_relations: SmallFiles {
                left: SMALL_TOGETHER,
            },
            small_others: SmallFiles {
                left: SMALL_TOGETHER,
            },
            is_whole: false,
            unexamined_bytes: 0,
            not_checked: Vec::new(),
            databases: None,
            fetched: BTreeSet::new(),
            without_file: BTreeMap::new(),
        }
    }

    /// Looks at everything that comes, until the end, an error or an interruption; what came before
    /// it counts.
    pub fn watch<A: Archives>(
        &mut self,
        stream: &mut TarStream<A>,
        sum_of: &dyn Fn(&str) -> Option<Algorithm>,
        passed: &mut StreamedBackup,
        progress: &dyn Progress,
    ) -> Result<(), SourceError> {
        let mut watch = Watch {
            flight: self,
            sum_of,
            passed,
        };
        let report = scan_stream(stream, &mut watch, progress);
        let internal = report.internal.iter().map(InternalFault::not_checked);
        self.not_checked.extend(internal);
        if report.end? == StreamEnd::Whole {
            self.is_whole = stream.troubles().is_empty();
            for why in stream.troubles() {
                self.gap("the archives whole", why);
            }
        }
        Ok(())
    }

    /// The archive, or the wish to see more of it, ended in a file: what is left of it is its
    /// length.
    fn cut(&mut self, file: &StreamEntry, len: u64, is_kept: bool, passed: &mut StreamedBackup) {
        if !is_kept {
            passed.add_gone(&file.path, len);
        }
        let why = format!("of {} bytes only {len} came", file.len);
        self.gap(&file.path, why);
    }

    fn book(&mut self, path: &str, tally: &mut Tally, is_kept: bool, passed: &mut StreamedBackup) {
        let tally = std::mem::take(tally);
        self.unsummed_pages += tally.unsummed;
        let mut kept = 0;
        for (offset, block, page) in tally.suspects {
            if self.suspects.len() >= self.shape.suspects_max {
                self.suspects_lost += 1;
                continue;
            }
            passed.keep_page(path, offset, &page);
            kept += 1;
            self.suspects.push(Suspect {
                path: path.to_owned(),
                offset,
                block,
            });
        }
        if !is_kept {
            self.pages_as_zeros = (self.pages_as_zeros + tally.filled).saturating_sub(kept);
        }
    }

    /// The file must be read for what it says when everything has passed.
    fn is_kept(&mut self, file: &StreamEntry, relation: Option<RelationFileName>) -> bool {
        if let Some(most) = essential(&file.path) {
            return file.len <= most;
        }
        match relation {
            Some(name) if is_of_catalogs(name) => true,
            Some(_) => self.small_relations.keep(file.len),
            None => is_of_history(&file.path) || self.small_others.keep(file.len),
        }
    }

    fn gap(&mut self, what: &str, why: String) {
        self.not_checked.push(NotChecked {
            what: what.to_owned(),
            why,
            inherent: false,
        });
    }

    /// What was taken for granted, before the control file came, is so; else only who can read it
    /// all again can judge.
    fn was_right(&self, cluster: &Cluster) -> bool {
        let guessed = self.shape.sums == PageSums::Unknown;
        let told = cluster.checksums() != Some(true) || self.unsummed_pages == 0;
        cluster.build == self.shape.build && (!guessed || (told && self.suspects_lost == 0))
    }

    /// What all of it says; nothing where it turns out that pages were looked at in a wrong way.
    /// `adjust` says what else is known of the files.
    pub fn judge(
        mut self,
        passed: Arc<StreamedBackup>,
        options: &CheckOptions,
        progress: &dyn Progress,
        adjust: impl FnOnce(OpenOptions) -> OpenOptions,
    ) -> Result<Option<CheckDocument>, OpenError> {
        let files = StreamedFiles {
            checksums: std::mem::take(&mut self.sums),
            is_partial: !self.is_whole,
            databases: self.databases.take(),
            fetched: std::mem::take(&mut self.fetched),
            without_file: std::mem::take(&mut self.without_file),
        };
        let opening = OpenOptions::of(passed).streamed(files);
        let cluster = Cluster::open(adjust(opening))?;
        if !self.was_right(&cluster) {
            return Ok(None);
        }
        let options = CheckOptions {
            level: Level::Pages,
            ..options.clone()
        };
        let mut document = check_cluster(&cluster, &options, &Counted(progress));
        let coverage = &mut document.coverage;
        coverage.zeroed_pages = coverage.zeroed_pages.saturating_sub(self.pages_as_zeros);
        count_unexamined(self.unexamined_bytes, self.shape.build, coverage);
        // The walker fails on a page that was kept as we did when it passed: that is told once.
        let told: BTreeSet<String> = coverage
            .not_checked
            .iter()
            .map(|gap| gap.what.clone())
            .collect();
        let is_told =
            |gap: &NotChecked| gap.what.starts_with("internal: ") && told.contains(&gap.what);
        let gaps = self.not_checked.into_iter().filter(|gap| !is_told(gap));
        coverage.not_checked.extend(gaps);
        if self.suspects_lost > 0 {
            coverage.not_checked.push(NotChecked {
                what: format!("{} that looked wrong", plural(self.suspects_lost, "page")),
                why: "they are more than memory holds; --memory gives more".into(),
                inherent: false,
            });
        }
        settle(&mut document);
        Ok(Some(document))
    }
}

/// Pages on which we failed time and again are shown as zeros, which the walker takes for checked.
fn count_unexamined(bytes: u64, build: Build, coverage: &mut Coverage) {
    let bytes = bytes.min(coverage.bytes_checked);
    let pages = bytes / u64::from(build.block_size.max(1));
    coverage.bytes_checked -= bytes;
    coverage.bytes_skipped += bytes;
    coverage.pages = coverage.pages.saturating_sub(pages);
    coverage.zeroed_pages = coverage.zeroed_pages.saturating_sub(pages);
}

/// The verdict after gaps were added or taken away.
pub fn settle(document: &mut CheckDocument) {
    if document.verdict == Verdict::Damaged {
        return;
    }
    let coverage = &document.coverage;
    let unknown = coverage.not_checked.iter().any(|entry| !entry.inherent);
    let gaps = coverage.bytes_skipped > 0 || coverage.bytes_unreadable > 0 || unknown;
    document.verdict = if gaps || document.needs_recovery || document.interrupted {
        Verdict::Incomplete
    } else {
        Verdict::Healthy
    };
}

/// The bytes were counted when they passed.
struct Counted<'a>(&'a dyn Progress);

impl Progress for Counted<'_> {
    fn expect(&self, _bytes: u64) {}

    fn advance(&self, _bytes: u64) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

/// The name of a relation's file, where the path is one's.
pub(crate) fn relation_file(path: &str) -> Option<RelationFileName> {
    let (folder, name) = path.rsplit_once('/')?;
    let mut parts = folder.split('/');
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_home = match (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) {
        (Some("global"), None, ..) => true,
        (Some("base"), Some(database), None, ..) => is_number(database),
        (Some("pg_tblspc"), Some(_), Some(version), Some(database), None) => {
            version.starts_with("PG_") && is_number(database)
        }
        _ => false,
    };
    RelationFileName::parse(name).filter(|name| is_home && !name.temporary)
}

/// How long such a file is at most, if it says what the backup is or how its other files are named.
fn essential(path: &str) -> Option<u64> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    match (path, name) {
        (MANIFEST, _) => Some(MANIFEST_BYTES),
        ("global/pg_control" | "backup_label" | "tablespace_map", _) => Some(ESSENTIAL_BYTES),
        (_, "PG_VERSION" | "pg_filenode.map") => Some(ESSENTIAL_BYTES),
        _ => None,
    }
}

/// By its number it is of a catalog, and one that holds names or what is needed to read them.
fn is_of_catalogs(name: RelationFileName) -> bool {
    name.filenode < FIRST_NORMAL && !LARGE_OBJECTS.contains(&name.filenode)
}

/// A status file, or WAL.
fn is_of_history(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_status = StatusLog::ALL.into_iter().any(|log| log.folder() == folder);
    is_status || folder.starts_with("pg_wal")
}

/// What watches a stream for a flight.
struct Watch<'w> {
    flight: &'w mut StreamCheck,
    sum_of: &'w dyn Fn(&str) -> Option<Algorithm>,
    passed: &'w mut StreamedBackup,
}

/// The file that passes.
struct Watched {
    is_kept: bool,
    sum: Option<(Algorithm, Digest)>,
    sieve: Option<FileSieve>,
    /// Since it was booked last.
    tally: Tally,
}

impl StreamConsumer for Watch<'_> {
    type File = Watched;

    fn directory(&mut self, path: &str) {
        self.passed.add_folder(path);
    }

    fn begin_file(&mut self, file: &StreamEntry) -> (Watched, Option<StreamPages>) {
        let relation = relation_file(&file.path);
        let is_kept = self.flight.is_kept(file, relation);
        if is_kept {
            self.passed.add_kept(&file.path)
        } else {
            self.passed.add_gone(&file.path, file.len)
        }
        let algorithm = (self.sum_of)(&file.path);
        let shape = &self.flight.shape;
        let watched = Watched {
            is_kept,
            sum: algorithm.map(|algorithm| (algorithm, Digest::new(algorithm))),
            sieve: relation.map(|name| FileSieve::new(name, shape)),
            tally: Tally::default(),
        };
        let pages = watched.sieve.as_ref().map(|sieve| StreamPages {
            first_block: sieve.first_block(),
            block_bytes: u64::from(shape.build.block_size),
        });
        (watched, pages)
    }

    fn bytes(
        &mut self,
        file: &StreamEntry,
        watched: &mut Watched,
        bytes: &[u8],
    ) -> Result<(), SourceError> {
        if watched.is_kept {
            self.passed.append(&file.path, bytes)?;
        }
        if let Some((_, sum)) = &mut watched.sum {
            sum.update(bytes);
        }
        Ok(())
    }

    fn pages(&mut self, window: &StreamWindow<'_>, cursor: &Cursor, watched: &mut Watched) {
        if let Some(sieve) = &mut watched.sieve {
            sieve.look(window.bytes, window.offset, cursor, &mut watched.tally);
        }
        self.book(window, watched);
    }

    /// Keeps the page: the walker, which meets it with a name, must not take it for one of zeros.
    fn after_panic(&mut self, window: &StreamWindow<'_>, watched: &mut Watched) -> bool {
        let block = BlockNo::try_from(window.first_block).ok();
        let Some((page, block)) = window.first_page().zip(block) else {
            return false;
        };
        let suspect = (window.offset, block, page.to_vec());
        watched.tally.suspects.push(suspect);
        self.book(window, watched);
        true
    }

    fn end_file(&mut self, file: &StreamEntry, watched: Watched, end: StreamFileEnd) {
        if !watched.is_kept {
            self.flight.unexamined_bytes += end.unexamined;
        }
        if end.came < file.len {
            self.flight
                .cut(file, end.came, watched.is_kept, self.passed);
        } else if let Some((algorithm, sum)) = watched.sum {
            let sum = (algorithm, sum.finish());
            self.flight.sums.insert(file.path.clone(), sum);
        }
    }

    fn abandon(&mut self, file: &StreamEntry) {
        self.passed.add_gone(&file.path, file.len);
        self.flight.unexamined_bytes += file.len;
    }
}

impl Watch<'_> {
    fn book(&mut self, window: &StreamWindow<'_>, watched: &mut Watched) {
        let (path, tally) = (&window.file.path, &mut watched.tally);
        self.flight.book(path, tally, watched.is_kept, self.passed);
    }
}

#[cfg(test)]
mod tests;
