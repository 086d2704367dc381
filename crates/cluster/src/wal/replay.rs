//! What recovery will do, read from the WAL that is there.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::layout::LAYOUTS;
use pgclinic_format::wal::{
    EndReason, Event, FileNumber, PageFault, PageHeader, Record, Shape, WalEnd, WalPages, WalReader,
};
use pgclinic_format::{BlockNo, ControlFile, Fork, Lsn, MultiXactId, Oid, RelationMap, Xid};
use pgclinic_source::Source;

use crate::error::ReadGap;
use crate::wal::block_history::MINIMAL;
use crate::wal::recovery::{LabelState, Recovery, StartKind};
use crate::wal::touched::{ReplayEffect, Touched};

/// Behind a redo point without WAL, pages are taken for younger up to here.
const YOUNGER_MAX: u64 = 1 << 40;

/// How often the end of WAL that is being written is looked for again.
const CHASES_MAX: usize = 64;

/// Whether the WAL that is there is all that replay will see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// All of it.
    End,
    /// Sound pages lie behind the place where reading ends.
    GoesOn {
        /// The first of them.
        page: Lsn,
    },
    /// More is needed from an archive or another server before the files fit together.
    Elsewhere,
}

/// What recovery will do.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The redo point.
    pub start: Lsn,
    /// Where the records end, and why.
    pub end: WalEnd,
    /// Whether that is the end of all WAL.
    pub stop: Stop,
    /// The newest timeline that was seen.
    pub timeline: u32,
    /// Records that were read.
    pub records: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// No transaction on disk has this number or a later one.
    pub next_xid: Xid,
    /// No multixact on disk has this number or a later one.
    pub next_multi: MultiXactId,
    /// The next offset among members of multixacts.
    pub next_multi_offset: u32,
    /// The next object identifier.
    pub next_oid: Oid,
    /// Full images of pages are written.
    pub full_page_writes: bool,
    /// The checkpoint record, where replay met it.
    pub checkpoint: Option<Checkpoint>,
    /// The files of catalogs that relation maps of the WAL name.
    pub mapped: BTreeSet<Oid>,
    /// What could not be read though it is there.
    pub troubles: Vec<ReadGap>,
    touched: Touched,
    files_end: Option<Lsn>,
    backup_ended: bool,
}

impl Replay {
    /// Reads from the redo point to the end.
    pub fn read(source: &dyn Source, recovery: &Recovery, control: &ControlFile) -> Self {
        let mut replay = Replay::read_once(source, recovery, control);
        if replay.stop == Stop::End
            && recovery.start.kind == StartKind::Crash
            && replay.is_cut_off()
        {
            replay.stop = Stop::Elsewhere;
        }
        replay
    }

    fn read_once(source: &dyn Source, recovery: &Recovery, control: &ControlFile) -> Self {
        let start = recovery.start;
        let mut replay = Replay::new(recovery, control);
        replay.read_on(source, recovery, start.redo);
        replay.stop = replay.judge_stop(source, recovery, control);
        replay
    }

    /// The same while a server writes on: up to where its WAL ended at some moment after the call.
    pub fn read_to_the_present(
        source: &dyn Source,
        recovery: &Recovery,
        control: &ControlFile,
    ) -> Self {
        let mut replay = Replay::read_once(source, recovery, control);
        for _ in 0..CHASES_MAX {
            if !matches!(replay.stop, Stop::GoesOn { .. }) {
                break;
            }
            let known = replay.records;
            let now = recovery.relisted(source);
            replay.read_on(source, &now, replay.end.record);
            replay.stop = replay.judge_stop(source, &now, control);
            if replay.records == known {
                break;
            }
        }
        replay
    }

    /// Reads from `start` to the end.
    fn read_on(&mut self, source: &dyn Source, recovery: &Recovery, start: Lsn) {
        let mut reader = WalReader::new(recovery.pages(source), recovery.shape, start);
        self.end = loop {
            match reader.read() {
                Ok(record) => self.record(&record, recovery),
                Err(end) => break end,
            }
        };
        self.timeline = self.timeline.max(reader.timeline().unwrap_or_default());
        self.bytes += reader.pages().bytes_read;
        for trouble in &reader.pages().troubles {
            if !self.troubles.contains(trouble) {
                self.troubles.push(trouble.clone());
            }
        }
    }

    fn new(recovery: &Recovery, control: &ControlFile) -> Self {
        let (start, checkpoint) = (recovery.start, &control.checkpoint);
        let shape = &recovery.shape;
        let last = recovery.files.segments.keys().next_back();
        Replay {
            start: start.redo,
            end: WalEnd {
                record: start.redo,
                at: start.redo,
                why: EndReason::NoPage,
            },
            stop: Stop::Elsewhere,
            timeline: start.timeline,
            records: 0,
            bytes: 0,
            next_xid: checkpoint.next_xid(),
            next_multi: checkpoint.next_multi,
            next_multi_offset: checkpoint.next_multi_offset,
            next_oid: checkpoint.next_oid,
            full_page_writes: true,
            checkpoint: None,
            mapped: BTreeSet::new(),
            troubles: Vec::new(),
            touched: Touched::of(control.wal_level == MINIMAL),
            files_end: last.and_then(|last| {
                let end = last.checked_add(1)?;
                end.checked_mul(u64::from(shape.segment_bytes)).map(Lsn)
            }),
            backup_ended: false,
        }
    }

    /// The numbers below which everything on disk must lie hold: all WAL was read.
    pub fn is_complete(&self) -> bool {
        self.stop == Stop::End
    }

    /// The LSNs that pages can have which replay will find newer than the redo point.
    pub fn range(&self) -> std::ops::Range<Lsn> {
        let end = match (self.stop, self.files_end) {
            (Stop::End, _) => self.end.record,
            (_, Some(end)) => end,
            (_, None) => Lsn(self.start.0.saturating_add(YOUNGER_MAX)),
        };
        self.start..end
    }

    /// What becomes of a block.
    pub fn fate(&self, file: FileNumber, fork: Fork, block: BlockNo) -> ReplayEffect {
        self.touched.fate(file, fork, block)
    }

    /// Its first record since the checkpoint brings an image of the block: it had content before,
    /// and the checkpoint wrote that.
    pub fn had_content(&self, file: FileNumber, fork: Fork, block: BlockNo) -> bool {
        self.touched.had_content(file, fork, block)
    }

    /// Blocks of the main fork of which records speak, in order.
    pub(crate) fn blocks_of(&self, file: FileNumber) -> impl Iterator<Item = BlockNo> {
        self.touched.blocks_of(file)
    }

    /// A truncation cut the block of the main fork off, and a file of so many blocks need not have
    /// it back: no later record shows that it grew over the block, or it did, with a page that may
    /// be all zero.
    pub fn may_lack(&self, file: FileNumber, block: BlockNo, blocks: u64) -> bool {
        self.touched.may_lack(file, block, blocks)
    }

    /// Recovery changes the main fork of the file, or may: the file as it lies there is not the one
    /// that recovery leaves.
    pub fn touches(&self, file: FileNumber) -> bool {
        self.touched.holds(file)
    }

    /// The file is there before recovery, and recovery never makes it shorter. So is one that was
    /// made since while `wal_level` was `minimal`.
    pub fn keeps_length(&self, file: FileNumber) -> bool {
        self.touched.keeps_length(file)
    }

    /// The relation got its files after the redo point.
    pub fn creates(&self, file: FileNumber) -> bool {
        self.touched.created.contains(&file)
    }

    /// Main forks that are truncated behind the redo point, with the fewest blocks that each had.
    pub(crate) fn truncated_to(&self) -> BTreeMap<FileNumber, u32> {
        self.touched.truncated_to()
    }

    /// Databases whose folders are made anew or removed behind the redo point.
    pub(crate) fn remade_databases(&self) -> &BTreeSet<Oid> {
        &self.touched.databases
    }

    /// Tablespaces in which some relation got its files behind the redo point.
    pub(crate) fn grown_tablespaces(&self) -> BTreeSet<Oid> {
        let created = self.touched.created.iter();
        created.map(|file| file.tablespace).collect()
    }

    /// A record can be read now where there was none: the server is at work.
    pub fn has_grown(&self, source: &dyn Source, recovery: &Recovery) -> bool {
        let now = recovery.relisted(source);
        let pages = now.pages(source);
        WalReader::new(pages, recovery.shape, self.end.record)
            .read()
            .is_ok()
    }

    fn record(&mut self, record: &Record<'_>, recovery: &Recovery) {
        self.records += 1;
        self.raise_xid(record.header.xid);
        record
            .blocks
            .iter()
            .for_each(|block| self.touched.note(block));
        self.mapped.extend(mapped_files(record));
        let event = Event::of(record, recovery.shape.major);
        self.touched.note_files(&event);
        match event {
            Event::Checkpoint { checkpoint, .. } => {
                self.raise_to(checkpoint.next_xid());
                self.raise_multi(checkpoint.next_multi, checkpoint.next_multi_offset);
                if record.lsn == recovery.start.checkpoint {
                    self.checkpoint = Some(checkpoint);
                }
            }
            Event::NextOid(next) => self.next_oid = next,
            // The page on which a timeline begins still carries the number of the one before.
            Event::EndOfRecovery { timeline, .. } => self.timeline = self.timeline.max(timeline),
            Event::BackupEnd(start) => self.backup_ended |= start == recovery.start.redo,
            Event::FullPageWrites(on) => self.full_page_writes &= on,
            Event::Ended(ended) => {
                self.raise_xid(ended.xid);
                ended.subxids().for_each(|xid| self.raise_xid(xid));
            }
            Event::MultiXact {
                multi,
                offset,
                count,
                newest,
            } => {
                self.raise_xid(newest);
                self.raise_multi(multi.next(), offset.wrapping_add(count));
            }
            Event::Running { next } => self.raise_to(next),
            _ => {}
        }
    }

    fn raise_xid(&mut self, xid: Xid) {
        if xid.is_normal() && !xid.precedes(self.next_xid) {
            self.next_xid = xid.next();
        }
    }

    fn raise_to(&mut self, next: Xid) {
        if next.is_normal() && self.next_xid.precedes(next) {
            self.next_xid = next;
        }
    }

    fn raise_multi(&mut self, next: MultiXactId, offset: u32) {
        if self.next_multi.precedes(next) {
            self.next_multi = next;
            self.next_multi_offset = offset;
        }
    }

    /// WAL is missing behind the end: a server makes the file that a record goes on in before it
    /// writes the rest of it. One that is at work may be about to.
    fn is_cut_off(&self) -> bool {
        let goes_on = self.end.why == EndReason::NoPage && self.end.at > self.end.record;
        goes_on || self.ends_in_garbage()
    }

    /// The log ends where its last file does. A server that goes on makes the next one before it
    /// writes there: only one that was idle behind `pg_switch_wal`, or the end of a backup, has
    /// none.
    pub fn ends_with_its_files(&self) -> bool {
        self.end.why == EndReason::NoPage
    }

    /// The log ends where a file does, and the next one begins with zeros: a server that goes on
    /// writes the first page of a file before any other, so that it never came to this one, or
    /// zeros were put over it.
    pub fn ends_before_zeros(&self, shape: &Shape) -> bool {
        let at = self.end.at.max(self.end.record);
        let page = shape.page_of(at);
        let is_zero = matches!(
            self.end.why,
            EndReason::Page(PageFault::Magic { found: 0, .. })
        );
        is_zero && shape.segment_of(page) == page
    }

    /// The log ends where a file does, and the next one holds pages of an older use: where they
    /// were written for. A server renames files that it needs no more to use them again. A crash
    /// between two files leaves it so, and so does a file that is put back to what it was before
    /// its use.
    pub fn ends_before_recycled(&self, shape: &Shape) -> Option<Lsn> {
        let page = shape.page_of(self.end.at.max(self.end.record));
        match self.end.why {
            EndReason::Page(PageFault::Address { found }) => {
                (found < page && shape.segment_of(page) == page).then_some(found)
            }
            _ => None,
        }
    }

    /// What stands where the next page should is neither one that was never written nor one of an
    /// older use of the file.
    fn ends_in_garbage(&self) -> bool {
        let EndReason::Page(PageFault::Magic { found, .. }) = self.end.why else {
            return false;
        };
        found != 0 && LAYOUTS.iter().all(|layout| layout.wal_magic != found)
    }

    fn judge_stop(&self, source: &dyn Source, recovery: &Recovery, control: &ControlFile) -> Stop {
        let reached = |least: Lsn| least.0 != 0 && self.end.record >= least;
        let begun_backup = control.backup_start.0 != 0 && !self.backup_ended;
        let whole = match (recovery.start.kind, &recovery.label) {
            (StartKind::Settled, _) => true,
            // Without the record that recovery begins from, nothing of what was read need be all
            // there was; and a server that was promoted goes on at least to where it ended its
            // recovery, on the timeline that it began there.
            (StartKind::Crash, _) => {
                let least = control.min_recovery_point;
                let is_there = reached(least) && self.timeline >= control.min_recovery_timeline;
                let is_way_known = recovery.timelines.is_known();
                self.checkpoint.is_some() && is_way_known && (least.0 == 0 || is_there)
            }
            (StartKind::Archive, _) => reached(control.min_recovery_point) && !begun_backup,
            (StartKind::Backup, LabelState::Read(label)) if label.from_standby => {
                reached(control.min_recovery_point)
            }
            (StartKind::Backup, _) => self.backup_ended,
        };
        // WAL that is there and out of reach may hold more, as that of an archive may.
        if !whole || recovery.files.is_unreadable || !self.troubles.is_empty() {
            return Stop::Elsewhere;
        }
        match goes_on(source, recovery, self.end) {
            Some(page) if recovery.start.kind == StartKind::Crash => Stop::GoesOn { page },
            _ => Stop::End,
        }
    }
}

/// The files that a record of a relation map names.
fn mapped_files(record: &Record<'_>) -> impl Iterator<Item = Oid> {
    let map = relation_map_in(record).and_then(|map| RelationMap::parse(map).ok());
    map.into_iter()
        .flat_map(|map| map.mappings.into_iter().map(|(_, filenode)| filenode))
}

/// The whole map that stands in a record behind database, tablespace and length.
pub(crate) fn relation_map_in<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    const MANAGER: u8 = 7;
    const MAP_AT: usize = 12;
    record
        .main
        .get(MAP_AT..)
        .filter(|_| record.header.manager == MANAGER)
}

/// The first sound page behind the end: on a later page of its segment, or at the head of a later
/// segment.
pub(crate) fn goes_on(source: &dyn Source, recovery: &Recovery, end: WalEnd) -> Option<Lsn> {
    let shape = &recovery.shape;
    let mut pages = recovery.pages(source);
    let page = shape.page_of(end.at.max(end.record));
    let number = shape.segment_number(page);
    // A promotion renames segments of the timeline that it leaves, and no reader goes back to one.
    let timeline = recovery.timelines.expected(number);
    let mut sound = |at: Lsn| {
        let header = pages.page(at).and_then(PageHeader::parse);
        let is_of_now = |header: &PageHeader| timeline.is_none_or(|own| header.timeline >= own);
        header.is_some_and(|header| header.check(at, shape).is_ok() && is_of_now(&header))
    };
    let segment_end = shape
        .segment_of(page)
        .0
        .saturating_add(u64::from(shape.segment_bytes));
    let mut later = (page.0.saturating_add(u64::from(shape.page_bytes))..segment_end)
        .step_by(usize::try_from(shape.page_bytes).unwrap_or(8192))
        .map(Lsn);
    if let Some(found) = later.find(|at| sound(*at)) {
        return Some(found);
    }
    let heads = recovery.files.segments.range(number + 1..);
    let mut heads =
        heads.filter_map(|(number, _)| number.checked_mul(u64::from(shape.segment_bytes)).map(Lsn));
    heads.find(|at| sound(*at))
}
