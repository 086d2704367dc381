//! The last checkpoint as `pg_wal` has it, for a cluster whose control file cannot be read.
//!
//! ```text
//! heads of segments ─► system identifier, sizes ─► newest segment, then older ones ─► the last checkpoint record
//!                                                                                     └─ a shutdown, and nothing after it: settled
//! ```
//!
//! A standby begins recovery at its last restartpoint, which only the control file tells: there the
//! oldest checkpoint is taken whose redo point is still in `pg_wal`. Truth: `InitWalRecovery` in
//! `src/backend/access/transam/xlogrecovery.c`.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgclinic_format::control_file::{Checkpoint, State};
use pgclinic_format::wal::{Event, PageHeader, Record, Shape, WalReader};
use pgclinic_format::{ControlFile, Layout, Lsn};
use pgclinic_source::{EntryKind, Source};

use crate::build::Build;
use crate::wal::files::{Timelines, WalFiles};
use crate::wal::pages::SegmentPages;
use crate::wal::recovery::{LabelState, Recovery, is_signalled};
use crate::wal::replay::goes_on;

/// Bytes of the header of a segment's first page.
const HEAD_BYTES: usize = 40;

/// A checkpoint record.
struct Found {
    at: Lsn,
    checkpoint: Checkpoint,
    shutdown: bool,
}

/// What was seen on the way back to the last checkpoint.
pub(super) struct Search<'a> {
    source: &'a dyn Source,
    shape: Shape,
    pub(super) files: Arc<WalFiles>,
    pub(super) timelines: Timelines,
    /// A recovery ended after it, so that the server's own checkpoint may be an older restartpoint.
    is_promoted: bool,
}

/// What the control file would say of recovery, as far as WAL tells: identifier, sizes, checkpoint,
/// and as state either *shut down*, *in production* or *in archive recovery*. All other fields are
/// zero. Nothing where no checkpoint is found.
pub(crate) fn control_from_wal(
    source: &dyn Source,
    layout: &Layout,
    build: Build,
    label: &LabelState,
) -> Option<ControlFile> {
    let shape = shape_of(source, layout, build)?;
    let mut search = Search::new(source, shape)?;
    let newest = search.newest()?;
    let is_standby = is_signalled(source);
    let found = if is_standby || search.is_promoted {
        search.oldest().unwrap_or(newest)
    } else {
        newest
    };
    let mut control = stand_in(&shape, build, &found);
    // A server that was promoted goes on where it wrote last.
    control.min_recovery_timeline = search.timelines.target();
    let may_be_settled = found.shutdown && !is_standby && *label == LabelState::None;
    if is_standby {
        control.state = State::InArchiveRecovery;
    } else if may_be_settled && search.is_last(&found, layout, &control) {
        control.state = State::ShutDown;
    }
    Some(control)
}

impl<'a> Search<'a> {
    pub(super) fn new(source: &'a dyn Source, shape: Shape) -> Option<Self> {
        let files = WalFiles::list(source, &shape);
        let target = newest_timeline(source, &shape, &files)?;
        Some(Search {
            timelines: Timelines::to(target, &files, &shape),
            files: Arc::new(files),
            source,
            shape,
            is_promoted: false,
        })
    }

    /// What the WAL looks like.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// What the record of a checkpoint at this place says, if there is one.
    pub(super) fn checkpoint_at(&self, at: Lsn) -> Option<Checkpoint> {
        let mut reader = WalReader::new(self.pages(), self.shape, at);
        let record = reader.read().ok().filter(|record| record.lsn == at)?;
        match Event::of(&record, self.shape.major) {
            Event::Checkpoint { checkpoint, .. } => Some(checkpoint),
            _ => None,
        }
    }

    /// The numbers of segments, the newest one first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = u64> {
        self.files.segments.keys().rev().copied()
    }

    pub(super) fn pages(&self) -> SegmentPages<'a> {
        let files = Arc::clone(&self.files);
        SegmentPages::new(self.source, self.shape, files, self.timelines.clone())
    }

    /// Where the last checkpoint record stands, and what it says.
    pub(super) fn last(&mut self) -> Option<(Lsn, Checkpoint)> {
        self.newest().map(|found| (found.at, found.checkpoint))
    }

    /// The last checkpoint record, from the newest segment backwards.
    fn newest(&mut self) -> Option<Found> {
        let numbers: Vec<u64> = self.files.segments.keys().rev().copied().collect();
        numbers.into_iter().find_map(|number| {
            let (mut last, mut promoted) = (None, false);
            self.each_checkpoint(number, |event| {
                match event {
                    RecoveryPoint::Checkpoint(found) => (last, promoted) = (Some(found), false),
                    RecoveryPoint::EndOfRecovery => promoted = true,
                }
                true
            });
            self.is_promoted |= promoted;
            last
        })
    }

    /// The first checkpoint record whose redo point is there, from the oldest segment forwards.
    fn oldest(&self) -> Option<Found> {
        let numbers: Vec<u64> = self.files.segments.keys().copied().collect();
        let begin = self.oldest_in_line(&numbers)?;
        let in_line = numbers.into_iter().filter(|number| *number >= begin);
        let begin = Lsn(begin.checked_mul(u64::from(self.shape.segment_bytes))?);
        for number in in_line {
            let mut first = None;
            self.each_checkpoint(number, |event| {
                if let RecoveryPoint::Checkpoint(found) = event
                    && found.checkpoint.redo >= begin
                {
                    first.get_or_insert(found);
                }
                first.is_none()
            });
            if first.is_some() {
                return first;
            }
        }
        None
    }

    /// Segments without a gap up to the newest that holds WAL. Those behind it wait to be used, and
    /// are in line too.
    fn oldest_in_line(&self, numbers: &[u64]) -> Option<u64> {
        let mut oldest = *numbers.last()?;
        for number in numbers.iter().rev().skip(1) {
            if number.checked_add(1) != Some(oldest) {
                break;
            }
            oldest = *number;
        }
        Some(oldest)
    }

    /// Gives the checkpoints that begin in a segment, and ends of recoveries, until `goes_on` is
    /// false.
    fn each_checkpoint(&self, number: u64, mut goes_on: impl FnMut(RecoveryPoint) -> bool) {
        self.each_record(number, |record| {
            let seen = match Event::of(record, self.shape.major) {
                Event::Checkpoint {
                    shutdown,
                    checkpoint,
                    ..
                } => RecoveryPoint::Checkpoint(Found {
                    at: record.lsn,
                    checkpoint,
                    shutdown,
                }),
                Event::EndOfRecovery { .. } => RecoveryPoint::EndOfRecovery,
                _ => return true,
            };
            goes_on(seen)
        });
    }

    /// Gives the records that begin in a segment, from its first one up to where they break, until
    /// `goes_on` is false.
    pub(super) fn each_record(&self, number: u64, mut goes_on: impl FnMut(&Record<'_>) -> bool) {
        let size = u64::from(self.shape.segment_bytes);
        let Some(begin) = number.checked_mul(size) else {
            return;
        };
        let end = Lsn(begin.saturating_add(size));
        let mut reader = WalReader::new(self.pages(), self.shape, Lsn(begin));
        if reader.find_first().is_err() {
            return;
        }
        while let Ok(record) = reader.read() {
            if record.lsn >= end || !goes_on(&record) {
                break;
            }
        }
    }

    /// No record follows it, and no sound page lies behind it.
    fn is_last(&self, found: &Found, layout: &Layout, control: &ControlFile) -> bool {
        let mut reader = WalReader::new(self.pages(), self.shape, found.at);
        let is_there = reader.read().is_ok_and(|record| record.lsn == found.at);
        let Err(end) = reader.read() else {
            return false;
        };
        let plan = Recovery::plan(self.source, layout, control, LabelState::None);
        let is_end = |plan: Recovery| goes_on(self.source, &plan, end).is_none();
        is_there && reader.pages().troubles.is_empty() && plan.is_some_and(is_end)
    }
}

enum RecoveryPoint {
    Checkpoint(Found),
    EndOfRecovery,
}

/// The timeline of the newest segment that begins as it must.
fn newest_timeline(source: &dyn Source, shape: &Shape, files: &WalFiles) -> Option<u32> {
    let all = files.segments.iter();
    let all = all.flat_map(|(number, own)| own.iter().map(|file| (*number, file.timeline)));
    let begins = |(number, timeline): &(u64, u32)| {
        let at = number.checked_mul(u64::from(shape.segment_bytes)).map(Lsn);
        let header = head(source, &shape.segment_name(*timeline, *number));
        at.zip(header)
            .is_some_and(|(at, header)| header.check(at, shape).is_ok())
    };
    let sound = all.filter(begins);
    sound.map(|(_, timeline)| timeline).max()
}

fn head(source: &dyn Source, name: &str) -> Option<PageHeader> {
    let mut bytes = [0; HEAD_BYTES];
    let path = format!("pg_wal/{name}");
    let count = source.read_at(&path, 0, &mut bytes).ok()?;
    PageHeader::parse(bytes.get(..count)?)
}

/// The system identifier in the first head of a segment that is one.
pub(super) fn first_identifier(source: &dyn Source, layout: &Layout) -> Option<u64> {
    let entries = source.list("pg_wal").ok()?.into_iter();
    let mut segments =
        entries.filter(|entry| entry.kind == EntryKind::File && is_segment_name(&entry.name));
    segments.find_map(|entry| {
        let header = head(source, &entry.name).filter(|own| own.magic == layout.wal_magic);
        header?.system_identifier
    })
}

/// What most heads of segments say of cluster and sizes. One that was brought from elsewhere is
/// outvoted.
pub(super) fn shape_of(source: &dyn Source, layout: &Layout, build: Build) -> Option<Shape> {
    let entries = source.list("pg_wal").ok()?.into_iter();
    let segments =
        entries.filter(|entry| entry.kind == EntryKind::File && is_segment_name(&entry.name));
    let mut votes: BTreeMap<(u64, u32, u32), u64> = BTreeMap::new();
    for entry in segments {
        let header = head(source, &entry.name).filter(|header| header.magic == layout.wal_magic);
        let said = header.and_then(|header| {
            let sizes = (header.page_bytes?, header.segment_bytes?);
            Some((header.system_identifier?, sizes.0, sizes.1))
        });
        if let Some(said) = said {
            *votes.entry(said).or_default() += 1;
        }
    }
    let (most, _) = votes.into_iter().max_by_key(|(_, votes)| *votes)?;
    let (system, page_bytes, segment_bytes) = most;
    Shape::new(
        layout,
        Some(system),
        page_bytes,
        segment_bytes,
        build.block_size,
    )
}

/// Timeline, log and segment, of eight hexadecimal digits each.
pub(crate) fn is_segment_name(name: &str) -> bool {
    name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn stand_in(shape: &Shape, build: Build, found: &Found) -> ControlFile {
    let segment_blocks = u32::try_from(build.segment_blocks()).unwrap_or(u32::MAX);
    ControlFile {
        system_identifier: shape.system_identifier.unwrap_or_default(),
        pg_control_version: 0,
        catalog_version_no: 0,
        state: State::InProduction,
        checkpoint_lsn: found.at,
        checkpoint: found.checkpoint.clone(),
        min_recovery_point: Lsn(0),
        // What initdb would set.
        max_connections: 100,
        max_worker_processes: 8,
        max_prepared_transactions: 0,
        wal_level: 0,
        track_commit_timestamp: false,
        min_recovery_timeline: 0,
        backup_start: Lsn(0),
        blcksz: build.block_size,
        relseg_size: segment_blocks,
        xlog_blcksz: shape.page_bytes,
        xlog_seg_size: shape.segment_bytes,
        name_data_len: 64,
        index_max_keys: 32,
        toast_max_chunk_size: build.toast_chunk,
        loblksize: build.block_size / 4,
        max_align: 8,
        data_checksum_version: 0,
        default_char_signedness: None,
        crc_stored: 0,
        crc_computed: 0,
        crc_at: 0,
    }
}
