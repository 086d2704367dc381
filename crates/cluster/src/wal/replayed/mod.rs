//! What the write-ahead log of a crashed cluster holds, applied to its rows in memory.
//!
//! Heaps, sequences, `pg_xact`, `pg_multixact`, relation maps and files made, cut and removed
//! follow the records as in the server's recovery; indexes and maps of free space and visibility do
//! not. What could not be applied is counted by file.

mod files;
pub(super) mod page_store;
mod status;

pub use files::ReplayedSource;
pub use page_store::ReplaySpace;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::oid::GLOBAL_TABLESPACE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::wal::redo::{OldRow, RedoFault, RedoKind, apply, deed};
use pgclinic_format::wal::{
    BlockReference, Event, FileNumber, Record, WalEnd, WalReader, manager_name,
};
use pgclinic_format::{Fork, Lsn, Oid, Page};
use pgclinic_source::Source;

use crate::cluster::Cluster;
use crate::databases::read_databases_again;
use crate::file_name::relation_path;
use crate::multixact::MultiXacts;
use crate::state::{Applied, ReplayInMemory, State};
use crate::transaction_log::TransactionLog;
use crate::wal::Replay;
use files::ChangedFiles;

/// Managers that only write to indexes.
const INDEX_MANAGERS: [u8; 6] = [11, 12, 13, 14, 16, 17];
const RELATION_MAP_MANAGER: u8 = 7;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Where the first record was read.
    pub start: Lsn,
    /// Where the records end, and why.
    pub end: WalEnd,
    /// Records that were read.
    pub records: u64,
    /// Changes of pages that were applied.
    pub applied: u64,
    /// Changes that could not be applied, by the files of the relation.
    pub not_applied: BTreeMap<FileNumber, u64>,
    /// Why, the first of them.
    pub faults: Vec<String>,
    /// All WAL that there is was read.
    pub is_complete: bool,
    /// It was there up to the end that was found before: a server at work removes what it needs no
    /// more.
    pub reached_end: bool,
}

/// Reasons that are kept.
const FAULTS_MAX: usize = 100;
/// Pages that are read only because an image is about to hide them: enough to find one that is
/// later than all WAL, and few enough for a disk that seeks.
const LOOKS_MAX: u64 = 4096;

/// Whose pages are changed.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Of {
    /// Every table's.
    All,
    /// Those of catalogs: shared ones, those with a number of their own, and these that the maps
    /// name.
    Catalogs(BTreeSet<Oid>),
}

impl Of {
    fn takes(&self, file: FileNumber) -> bool {
        match self {
            Of::All => true,
            Of::Catalogs(mapped) => {
                let kept = file.tablespace == GLOBAL_TABLESPACE || file.filenode < FIRST_NORMAL_OID;
                kept || mapped.contains(&file.filenode)
            }
        }
    }
}

/// Applies the records to memory.
struct Replayer<'a> {
    of: Of,
    cluster: &'a Cluster,
    source: &'a dyn Source,
    major: u16,
    changed: ChangedFiles,
    /// Of segments that records named: a path is made once and looked up a million times.
    paths: HashMap<(FileNumber, u32), Arc<str>>,
    /// No page carries a later one, unless a server is at work.
    lsn_max: Lsn,
    /// How many pages on the disk are still compared with that before an image hides them.
    looks_left: u64,
    later_pages: u64,
    applied: u64,
    not_applied: BTreeMap<FileNumber, u64>,
    faults: Vec<String>,
}

impl Cluster {
    /// The same cluster after a recovery that its files know nothing of: changed pages are kept in
    /// this memory, and on disk where that is full. `None` where there is nothing to recover, or
    /// nothing tells where recovery begins.
    pub fn replayed(&self, space: &ReplaySpace<'_>) -> Option<(Cluster, Replayed)> {
        self.replayed_of(Of::All, space)
    }

    /// The same for catalogs and status files alone: names, columns and what became of
    /// transactions.
    pub fn replayed_catalogs(&self, space: &ReplaySpace<'_>) -> Option<(Cluster, Replayed)> {
        let mut mapped = self.replay()?.mapped.clone();
        for map in self.homes.iter().flat_map(|home| self.relation_map(home)) {
            mapped.extend(map.mappings.iter().map(|(_, filenode)| *filenode));
        }
        self.replayed_of(Of::Catalogs(mapped), space)
    }

    fn replayed_of(&self, of: Of, space: &ReplaySpace<'_>) -> Option<(Cluster, Replayed)> {
        let replay = self.replay()?;
        let recovery = self.recovery()?;
        let status_before = match &self.state {
            State::Running { status_before, .. } => status_before.clone(),
            _ => BTreeMap::new(),
        };
        let mut replayer = Replayer {
            of,
            cluster: self,
            source: self.source.as_ref(),
            major: self.layout.major,
            changed: ChangedFiles::of(self, &status_before, space),
            paths: HashMap::new(),
            lsn_max: if self.is_running() {
                Lsn(u64::MAX)
            } else {
                replay.end.record
            },
            looks_left: if self.is_running() { 0 } else { LOOKS_MAX },
            later_pages: 0,
            applied: 0,
            not_applied: BTreeMap::new(),
            faults: Vec::new(),
        };
        let pages = recovery.pages(self.source.as_ref());
        let mut reader = WalReader::new(pages, recovery.shape, recovery.start.redo);
        let mut records = 0;
        let end = loop {
            match reader.read() {
                // What a server at work has written since the limits were read is left to a newer
                // look.
                Ok(record) if record.lsn >= replay.end.record => break replay.end,
                Ok(record) => {
                    records += 1;
                    replayer.record(&record);
                }
                Err(end) => break end,
            }
        };
        let reached_end = end.record >= replay.end.record;
        // A page of transaction status that could not be kept belongs to no file that is counted.
        let failure = replayer.changed.failure.take();
        let is_kept = failure.is_none();
        replayer.faults.splice(0..0, failure);
        let replayed = Replayed {
            start: recovery.start.redo,
            end,
            records,
            applied: replayer.applied,
            not_applied: replayer.not_applied,
            faults: replayer.faults,
            is_complete: replay.is_complete() && reached_end && is_kept,
            reached_end,
        };
        let later_pages = replayer.later_pages;
        let source = ReplayedSource::new(Arc::clone(&self.source), replayer.changed);
        let source = Arc::new(source);
        let cluster = Cluster::open(self.seen_through(source)).ok()?;
        let applied = if replayed.is_complete && replayed.not_applied.is_empty() {
            Applied::All
        } else {
            Applied::NotAll
        };
        let mut cluster = cluster.after(replay, applied, later_pages);
        if cluster.is_running() {
            read_databases_again(&mut cluster);
        }
        Some((cluster, replayed))
    }

    /// With the limits of a recovery whose work the files already show.
    fn after(mut self, replay: &Replay, applied: Applied, later_pages: u64) -> Self {
        let page_bytes = self.page_bytes();
        let source = || Arc::clone(&self.source);
        if replay.is_complete() {
            let next_multi = (replay.next_multi, replay.next_multi_offset);
            let transactions = TransactionLog::new(source(), page_bytes, Some(replay.next_xid));
            let multixacts = MultiXacts::new(source(), page_bytes, Some(next_multi));
            (self.transactions, self.multixacts) = (transactions, multixacts);
        }
        Cluster {
            state: self
                .state
                .after(ReplayInMemory::of(replay, applied, later_pages)),
            ..self
        }
    }
}

impl Replayer<'_> {
    fn record(&mut self, record: &Record<'_>) {
        match record.header.manager {
            manager if INDEX_MANAGERS.contains(&manager) => {}
            RELATION_MAP_MANAGER => self.relation_map(record),
            _ => self.blocks(record),
        }
        let event = Event::of(record, self.major);
        self.status(record, &event);
        match event {
            Event::Ended(ended) => ended.files().for_each(|file| self.drop_file(file)),
            Event::Created(of) if matches!(of.fork, Fork::Main | Fork::Init) => {
                let path = relation_path(self.cluster.layout, of.file, of.fork, 0);
                let file = self.changed.file(self.source, &path);
                file.len = Some(file.len.unwrap_or(0));
            }
            Event::Truncated {
                file,
                blocks: Some(blocks),
            } => self.truncate(file, blocks),
            _ => {}
        }
    }

    fn path(&self, file: FileNumber, segment: u32) -> String {
        relation_path(self.cluster.layout, file, Fork::Main, segment)
    }

    /// Path and number in the file of a block.
    fn place(&mut self, file: FileNumber, block: u32) -> (Arc<str>, u32) {
        let whole = self.cluster.build.segment_blocks().max(1);
        let segment = u32::try_from(u64::from(block) / whole).unwrap_or(u32::MAX);
        let within = u32::try_from(u64::from(block) % whole).unwrap_or(0);
        if let Some(path) = self.paths.get(&(file, segment)) {
            return (Arc::clone(path), within);
        }
        let path: Arc<str> = self.path(file, segment).into();
        self.paths.insert((file, segment), Arc::clone(&path));
        (path, within)
    }

    /// Blocks of tables and sequences. An update's old page comes before its new one.
    fn blocks(&mut self, record: &Record<'_>) {
        let mut old = OldRow::default();
        for block in record.blocks.iter().rev() {
            if block.fork != Fork::Main || !self.of.takes(block.file) {
                continue;
            }
            match self.block(record, block, &mut old) {
                Change::Applied => self.applied += 1,
                Change::Needless => {}
                Change::Failed(why) => {
                    *self.not_applied.entry(block.file).or_default() += 1;
                    self.fail(record, block, why);
                }
            }
        }
    }

    fn fail(&mut self, record: &Record<'_>, block: &BlockReference<'_>, why: &str) {
        if self.faults.len() < FAULTS_MAX {
            let header = record.header;
            let manager = manager_name(header.manager).unwrap_or("unknown");
            let path = self.path(block.file, 0);
            self.faults.push(format!(
                "{} {manager} 0x{:02x}, {path} block {}: {why}",
                record.lsn,
                header.operation(),
                block.block
            ));
        }
    }

    /// Changes one block.
    fn block(
        &mut self,
        record: &Record<'_>,
        block: &BlockReference<'_>,
        old: &mut OldRow,
    ) -> Change {
        const NO_ROOM: &str = "there is neither memory nor disk for more pages";
        let (path, number) = self.place(block.file, block.block);
        let page_bytes = usize::try_from(self.changed.page_bytes).unwrap_or(8192);
        if let Some(image) = block.image.filter(|image| image.apply) {
            let Ok(mut page) = image.page(page_bytes) else {
                return Change::Failed("its image cannot be decompressed");
            };
            if !holds_rows(&page) {
                return Change::Needless;
            }
            set_lsn(&mut page, record.end);
            self.look_under(&path, number, block.block);
            return match self.changed.put(self.source, &path, number, page) {
                Ok(()) => Change::Applied,
                Err(_) => Change::Failed(NO_ROOM),
            };
        }
        if deed(record, block.id) == RedoKind::Nothing {
            return Change::Needless;
        }
        if block.will_init {
            let zeros = vec![0; page_bytes];
            if self.changed.put(self.source, &path, number, zeros).is_err() {
                return Change::Failed(NO_ROOM);
            }
        }
        let page = match self.changed.page(self.source, &path, number) {
            Ok(Some(page)) => page,
            // A page beyond the end belongs to a file that a later record removes or cuts.
            Ok(None) => return Change::Needless,
            Err(_) => return Change::Failed(NO_ROOM),
        };
        let newer = Page::parse(page).filter(|page| page.pd_lsn() >= record.end);
        if let Some(newer) = newer.filter(|_| !block.will_init) {
            let is_sane = newer.header_is_sane_to_the_server();
            return if is_sane && newer.pd_lsn() <= self.lsn_max {
                Change::Needless
            } else {
                Change::Failed("the page on the disk was hit: its LSN tells nothing")
            };
        }
        let done = apply(record, self.major, block.id, page, old);
        set_lsn(page, record.end);
        match done {
            Ok(()) => Change::Applied,
            Err(fault) => Change::Failed(words_of(fault)),
        }
    }

    /// Counts a sound page that was changed later than the last record, before an image hides it.
    fn look_under(&mut self, path: &str, number: u32, block: u32) {
        if self.looks_left == 0 {
            return;
        }
        let Some(page) = self.changed.first_look(self.source, path, number) else {
            return;
        };
        self.looks_left -= 1;
        let has_checksums = self.cluster.checksums() == Some(true);
        let is_later = Page::parse(&page).is_some_and(|own| {
            own.pd_lsn() > self.lsn_max
                && own.header_is_sane_to_the_server()
                && (!has_checksums || own.pd_checksum() == page_checksum(&page, block))
        });
        self.later_pages += u64::from(is_later);
    }

    fn drop_file(&mut self, file: FileNumber) {
        self.truncate(file, 0);
        let path = self.path(file, 0);
        self.changed.remove(self.source, &path);
        self.not_applied.remove(&file);
    }

    fn truncate(&mut self, file: FileNumber, blocks: u32) {
        let whole = self.cluster.build.segment_blocks().max(1);
        for segment in 0.. {
            let path = self.path(file, segment);
            let is_there = self.changed.file(self.source, &path).len.is_some();
            if !is_there {
                self.changed
                    .by_path
                    .retain(|known, file| *known != path || file.len.is_some());
                break;
            }
            let first = u64::from(segment) * whole;
            let left = u64::from(blocks).saturating_sub(first).min(whole);
            match (segment, left) {
                (1.., 0) => self.changed.remove(self.source, &path),
                _ => {
                    let len = left * self.changed.page_bytes;
                    self.changed.cut(self.source, &path, len);
                }
            }
        }
    }
}

/// What became of a block's change.
enum Change {
    Applied,
    /// There is nothing to do, or it is done already.
    Needless,
    Failed(&'static str),
}

/// Tables have no special space, and sequences a small one with a number of their own; anything
/// else is an index.
fn holds_rows(page: &[u8]) -> bool {
    let Some(view) = Page::parse(page) else {
        return false;
    };
    let special = page.len().saturating_sub(usize::from(view.pd_special()));
    view.is_new()
        || special == 0
        || pgclinic_format::sequence::magic(view) == Some(pgclinic_format::sequence::SEQUENCE_MAGIC)
}

/// Why a record could not be applied.
pub(super) fn words_of(fault: RedoFault) -> &'static str {
    match fault {
        RedoFault::Short => "the record is too short",
        RedoFault::Page => "the page is not the one that was changed",
        RedoFault::Unknown => "records of this kind are not known",
    }
}

pub(super) fn set_lsn(page: &mut [u8], lsn: Lsn) {
    let [high, low] = [lsn.0 >> 32, lsn.0 & 0xFFFF_FFFF];
    for (at, half) in [(0, high), (4, low)] {
        let half = u32::try_from(half).unwrap_or_default();
        pgclinic_format::build::put_u32(page, at, half);
    }
}
