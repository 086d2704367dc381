//! The WAL that must be whole: the checkpoint record, the heads of segments, and the records of
//! older segments.

use std::collections::BTreeSet;

use pgclinic_format::control_file::{Checkpoint, State};
use pgclinic_format::wal::{
    BlockReference, Event, FileNumber, Outcome, PageFault, PageHeader, Record, Shape, WalEnd,
    WalPages, WalReader,
};
use pgclinic_format::{BlockNo, ControlFile, Lsn, MultiXactId};
use pgclinic_source::Source;

use crate::error::ReadGap;
use crate::wal::recovery::Recovery;
use crate::wal::row_changes::RowChanges;
use crate::wal::touched::Touched;

/// Breaks of older WAL that are told.
const BREAKS_MAX: usize = 100;
/// Bytes before the redo point that every look at the rows in WAL reads.
const RECENT_BYTES: u64 = 32 << 20;
/// Prepared transactions that are remembered; `max_prepared_transactions` is far lower.
const PREPARED_MAX: usize = 1 << 16;

/// What stands where the checkpoint record should.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckpointState {
    /// A checkpoint record.
    Found {
        /// What it says.
        checkpoint: Checkpoint,
        /// The server was shut down with it.
        shutdown: bool,
    },
    /// Its segment is not there.
    NoSegment,
    /// Its segment, or one that the record reaches into, is there and cannot be read.
    Unreadable(ReadGap),
    /// No record.
    NoRecord(WalEnd),
    /// A record of something else.
    Other {
        /// `xl_rmid`.
        manager: u8,
        /// `xl_info`.
        info: u8,
    },
}

/// A segment that does not begin as it must.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadFault {
    /// The file.
    pub path: String,
    /// The number of the segment.
    pub number: u64,
    /// What is wrong with its first page; `None` when the file has another length.
    pub fault: Option<PageFault>,
    /// Bytes of the file.
    pub len: u64,
}

/// Records of a run of segments, older than what recovery needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    /// Where the first one begins.
    pub from: Option<Lsn>,
    /// Places where the links break.
    pub breaks: Vec<WalEnd>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Records that are right.
    pub records: u64,
    /// Transactions that were prepared and not ended, since the last break.
    pub prepared: BTreeSet<u32>,
    /// Blocks and files that they speak of, since the last break.
    touched: Touched,
    /// What they do to rows, since the last break.
    pub(crate) rows: RowChanges,
}

/// What was seen without reading all of the WAL.
#[derive(Clone, PartialEq, Debug)]
pub struct WalSurvey {
    /// What stands where the checkpoint record should.
    pub checkpoint: CheckpointState,
    /// Segments up to the one with the checkpoint that do not begin as they must, in order.
    pub heads: Vec<HeadFault>,
    /// Segments between the redo point and the checkpoint that are not there.
    pub missing: Vec<u64>,
    /// The lowest segment from which on none is missing up to the redo point.
    pub oldest: u64,
}

impl WalSurvey {
    /// Reads the checkpoint record and the first pages of segments.
    pub fn take(source: &dyn Source, recovery: &Recovery) -> Self {
        let (shape, start) = (&recovery.shape, recovery.start);
        let redo = shape.segment_number(start.redo.min(start.checkpoint));
        let last = shape.segment_number(start.checkpoint);
        // A redo point that lies far before its checkpoint is damage of the control file.
        let needed = redo.max(last.saturating_sub(1 << 20))..=last;
        let there = |number: &u64| {
            recovery
                .timelines
                .choose(&recovery.files, *number)
                .is_some()
        };
        let oldest = oldest_in_line(recovery, redo);
        let missing: Vec<u64> = needed.filter(|number| !there(number)).take(1000).collect();
        let numbers = recovery.files.segments.range(oldest..=last);
        WalSurvey {
            checkpoint: read_checkpoint(source, recovery),
            heads: numbers
                .filter_map(|(number, _)| head_fault(source, recovery, *number))
                .collect(),
            missing,
            oldest,
        }
    }

    /// Reads all records from the oldest segment in line up to the redo point.
    pub fn older(&self, source: &dyn Source, recovery: &Recovery) -> Chain {
        chain_from(source, recovery, self.oldest)
    }

    /// Reads the last of them.
    pub(crate) fn recent(&self, source: &dyn Source, recovery: &Recovery) -> Chain {
        chain_from(source, recovery, self.recent_from(recovery))
    }

    /// The older records are in these segments alone.
    pub(crate) fn is_all_recent(&self, recovery: &Recovery) -> bool {
        self.recent_from(recovery) == self.oldest
    }

    fn recent_from(&self, recovery: &Recovery) -> u64 {
        let from = recovery.start.redo.0.saturating_sub(RECENT_BYTES);
        self.oldest.max(recovery.shape.segment_number(Lsn(from)))
    }
}

fn chain_from(source: &dyn Source, recovery: &Recovery, first: u64) -> Chain {
    let shape = &recovery.shape;
    let until = recovery.start.redo;
    let mut chain = Chain::default();
    let mut number = first;
    while number <= shape.segment_number(until) && chain.breaks.len() < BREAKS_MAX {
        let Some(begin) = number.checked_mul(u64::from(shape.segment_bytes)) else {
            break;
        };
        let mut reader = WalReader::new(recovery.pages(source), *shape, Lsn(begin));
        let broken = match reader.find_first() {
            Ok(first) => {
                chain.from.get_or_insert(first);
                follow(&mut reader, until, &mut chain, shape)
            }
            Err(end) => Some(end),
        };
        chain.bytes += reader.pages().bytes_read;
        let Some(end) = broken else { break };
        // What ends them may be what cannot be read.
        chain.prepared.clear();
        chain.touched = Touched::default();
        chain.rows = RowChanges::default();
        let is_out_of_reach = !reader.pages().troubles.is_empty();
        number = shape
            .segment_number(end.at.max(Lsn(begin)))
            .saturating_add(1);
        // What cannot be read is no break: the source keeps its name for the end of the run.
        if !is_out_of_reach {
            chain.breaks.push(end);
        }
    }
    chain
}

/// Reads up to `until`; the place where the links break before it.
fn follow(
    reader: &mut WalReader<impl WalPages>,
    until: Lsn,
    chain: &mut Chain,
    shape: &Shape,
) -> Option<WalEnd> {
    while reader.position() < until {
        match reader.read() {
            Ok(record) => {
                chain.note(&record, shape);
            }
            Err(end) if end.record >= until => return None,
            Err(end) => return Some(end),
        }
    }
    None
}

impl Chain {
    /// Blocks of a main fork of so many blocks that the records left with something on them.
    pub(crate) fn blocks_left(&self, file: FileNumber, blocks: u64) -> Vec<BlockNo> {
        let is_left = |block: &BlockNo| !self.touched.may_lack(file, *block, blocks);
        self.touched.blocks_of(file).filter(is_left).collect()
    }

    /// It speaks of more blocks than are remembered.
    pub(crate) fn overflows(&self) -> bool {
        self.touched.overflows()
    }

    fn note(&mut self, record: &Record<'_>, shape: &Shape) {
        self.records += 1;
        let event = Event::of(record, shape.major);
        self.note_prepared(&event);
        self.touched.note_files(&event);
        self.rows.note_files(&event);
        self.rows.note(record);
        let with_content = record
            .blocks
            .iter()
            .filter(|block| leaves_content(block, shape));
        with_content.for_each(|block| self.touched.note(block));
    }

    fn note_prepared(&mut self, event: &Event<'_>) {
        let Event::Ended(ended) = event else { return };
        if ended.outcome != Outcome::Prepared {
            self.prepared.remove(&ended.xid.0);
        } else if self.prepared.len() < PREPARED_MAX {
            self.prepared.insert(ended.xid.0);
        }
    }
}

/// A page that was made ahead of its rows is copied with its table, and its image is of zeros.
fn leaves_content(block: &BlockReference<'_>, shape: &Shape) -> bool {
    let Some(image) = block
        .image
        .filter(|image| image.apply && image.hole_bytes == 0)
    else {
        return true;
    };
    let page = image.page(usize::try_from(shape.block_bytes).unwrap_or(8192));
    page.map_or(true, |page| page.iter().any(|byte| *byte != 0))
}

/// Backwards from the segment of the redo point as long as each segment is there, on the timeline
/// on which it was written last.
fn oldest_in_line(recovery: &Recovery, redo: u64) -> u64 {
    let mut oldest = redo;
    while let Some(before) = oldest.checked_sub(1) {
        let expected = recovery.timelines.expected(before);
        let there = expected.and_then(|timeline| recovery.files.file(before, timeline));
        if there.is_none() {
            break;
        }
        oldest = before;
    }
    oldest
}

fn read_checkpoint(source: &dyn Source, recovery: &Recovery) -> CheckpointState {
    let (shape, start) = (&recovery.shape, recovery.start);
    let number = shape.segment_number(start.checkpoint);
    if recovery.timelines.choose(&recovery.files, number).is_none() {
        return CheckpointState::NoSegment;
    }
    let mut reader = WalReader::new(recovery.pages(source), *shape, start.checkpoint);
    match reader.read() {
        Ok(record) => state_of(&record, start.checkpoint, shape.major),
        Err(end) => match reader.pages().troubles.first() {
            Some(trouble) => CheckpointState::Unreadable(trouble.clone()),
            None => CheckpointState::NoRecord(end),
        },
    }
}

fn state_of(record: &Record<'_>, checkpoint: Lsn, major: u16) -> CheckpointState {
    match Event::of(record, major) {
        Event::Checkpoint {
            checkpoint: found,
            shutdown,
            ..
        } if record.lsn == checkpoint => CheckpointState::Found {
            checkpoint: found,
            shutdown,
        },
        _ => CheckpointState::Other {
            manager: record.header.manager,
            info: record.header.info,
        },
    }
}

fn head_fault(source: &dyn Source, recovery: &Recovery, number: u64) -> Option<HeadFault> {
    let shape = &recovery.shape;
    let file = recovery.timelines.choose(&recovery.files, number)?;
    let at = Lsn(number.checked_mul(u64::from(shape.segment_bytes))?);
    let path = format!("pg_wal/{}", shape.segment_name(file.timeline, number));
    let fault = |fault| HeadFault {
        path: path.clone(),
        number,
        fault,
        len: file.len,
    };
    if file.len != u64::from(shape.segment_bytes) {
        return Some(fault(None));
    }
    let mut page = vec![0; 40];
    let read = source.read_at(&path, 0, &mut page).ok()?;
    let header = PageHeader::parse(page.get(..read)?)?;
    let wrong = header.check(at, shape).err()?;
    Some(fault(Some(wrong)))
}

impl CheckpointState {
    /// The field in which the record differs from the copy in `control`, with both values. While it
    /// replays, and until the first checkpoint after it, the server takes a later `nextXid` into
    /// the copy (`xlog_redo` in `xlog.c`).
    pub fn difference(&self, control: &ControlFile) -> Option<(&'static str, String, String)> {
        let CheckpointState::Found { checkpoint, .. } = self else {
            return None;
        };
        let differs =
            |name, record: String, file: String| (record != file).then_some((name, record, file));
        let (a, b) = (checkpoint, &control.checkpoint);
        let may_be_ahead = control.state != State::ShutDown;
        let multi = |multi: MultiXactId| multi.to_string();
        None.or_else(|| differs("redo", a.redo.to_string(), b.redo.to_string()))
            .or_else(|| {
                differs(
                    "ThisTimeLineID",
                    a.timeline.to_string(),
                    b.timeline.to_string(),
                )
            })
            .or_else(|| {
                let (a, b) = (a.next_full_xid, b.next_full_xid);
                let ahead = may_be_ahead && b > a;
                differs("nextXid", a.to_string(), b.to_string()).filter(|_| !ahead)
            })
            .or_else(|| differs("nextOid", a.next_oid.to_string(), b.next_oid.to_string()))
            .or_else(|| differs("nextMulti", multi(a.next_multi), multi(b.next_multi)))
            .or_else(|| {
                let (a, b) = (a.next_multi_offset, b.next_multi_offset);
                differs("nextMultiOffset", a.to_string(), b.to_string())
            })
            .or_else(|| {
                differs(
                    "oldestXid",
                    a.oldest_xid.0.to_string(),
                    b.oldest_xid.0.to_string(),
                )
            })
            .or_else(|| differs("oldestMulti", multi(a.oldest_multi), multi(b.oldest_multi)))
    }
}
