//! The one pass over WAL, from the oldest place that is needed to the end of the cluster's changes.

use pgclinic_format::wal::{Event, Outcome, Record, Shape, WalEnd, WalReader, WholeRecord};
use pgclinic_format::{ControlFile, Fork, Lsn};
use pgclinic_model::Progress;

use super::copied_pages::CopiedPages;
use super::goal::{Goal, GoalKind, is_checkpoint_of};
use super::one_history::OneHistory;
use super::outcome::NotProven;
use super::page_copies::PageCopy;
use super::status_pages::TrackedStatus;
use super::tracked::{Touch, TrackedBlocks};
use super::wal_copies::WalCopies;
use crate::wal::files::Timelines;

const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const STORAGE: u8 = 2;
const DATABASE: u8 = 4;
const TABLESPACE: u8 = 5;
/// `XLOG_PARAMETER_CHANGE`: `wal_level` or another of the settings that the control file has.
const PARAMETER_CHANGE: u8 = 0x60;
/// `XLOG_XACT_HAS_INFO`: the record names more than the time.
const HAS_INFO: u8 = 0x80;
/// Bytes of WAL after which the progress is told.
const STEP_BYTES: u64 = 1 << 20;

/// What is read, and how far.
#[derive(Clone, Copy)]
pub(super) struct Course<'a> {
    pub(super) shape: Shape,
    pub(super) copies: &'a WalCopies,
    pub(super) timelines: &'a Timelines,
    /// Which copies count.
    pub(super) history: &'a OneHistory,
    pub(super) goal: Goal,
    /// Of the damaged cluster.
    pub(super) control: &'a ControlFile,
    pub(super) major: u16,
}

/// Where reading begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// At a record.
    At(Lsn),
    /// At the first record of a segment.
    Segment(u64),
}

/// What came of the pass.
pub(super) struct Passed<'a> {
    pub(super) pages: CopiedPages<'a>,
    /// Since here, there is no gap.
    pub(super) run_from: Lsn,
    /// Where the record at the goal ends, if one must be there.
    pub(super) goal_end: Lsn,
    /// WAL does not reach so far as it must.
    pub(super) failure: Option<NotProven>,
    /// For each copy, whether its checkpoint was met.
    pub(super) met: Vec<bool>,
    pub(super) records: u64,
}

struct Pass<'a, 'b> {
    course: Course<'a>,
    tracked: &'b mut TrackedBlocks<'a>,
    status: &'b mut TrackedStatus,
    page_copies: &'a [PageCopy<'a>],
    run_from: Lsn,
    goal_end: Lsn,
    met: Vec<bool>,
    /// The checkpoint of the damaged cluster, as the control file has it.
    own_checkpoint: Met,
    records: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Met {
    NotYet,
    Same,
    Other,
}

pub(super) fn pass<'a>(
    course: Course<'a>,
    start: Start,
    (tracked, status): (&mut TrackedBlocks<'a>, &mut TrackedStatus),
    page_copies: &'a [PageCopy<'a>],
    progress: &dyn Progress,
) -> Passed<'a> {
    let pages = CopiedPages::new(
        course.shape,
        course.copies,
        course.timelines,
        course.history,
    );
    let mut pass = Pass {
        course,
        tracked,
        status,
        page_copies,
        run_from: Lsn(0),
        goal_end: course.goal.at,
        met: vec![false; page_copies.len()],
        own_checkpoint: Met::NotYet,
        records: 0,
    };
    let (pages, ended) = pass.run(pages, start, progress);
    Passed {
        failure: ended.err().or_else(|| pass.other_history()),
        pages,
        run_from: pass.run_from,
        goal_end: pass.goal_end,
        met: pass.met,
        records: pass.records,
    }
}

impl<'a> Pass<'a, '_> {
    fn run(
        &mut self,
        pages: CopiedPages<'a>,
        start: Start,
        progress: &dyn Progress,
    ) -> (CopiedPages<'a>, Result<(), NotProven>) {
        let goal = self.course.goal;
        let (mut reader, mut found) = self.begin(pages, start);
        let mut told = reader.position();
        progress.expect(goal.at.0.saturating_sub(told.0));
        loop {
            let record = match found {
                Ok(()) => reader.read_whole(),
                Err(end) => Err(end),
            };
            found = Ok(());
            let end = match record {
                Ok(record) if record.lsn >= goal.at => {
                    let reached = self.judge(&record);
                    return (reader.into_pages(), reached);
                }
                Ok(record) => {
                    self.take(&record);
                    let step = record.end.0.saturating_sub(told.0);
                    if step >= STEP_BYTES {
                        told = record.end;
                        progress.advance(step);
                        if progress.is_interrupted() {
                            return (reader.into_pages(), Err(NotProven::Interrupted));
                        }
                    }
                    continue;
                }
                Err(end) => end,
            };
            if self.is_reached(end) {
                return (reader.into_pages(), Ok(()));
            }
            if reader.pages_mut().try_another_copy(end.record) {
                continue;
            }
            let file = reader.pages().words_at(end.at);
            let Some(next) = self.next_segment(end) else {
                return (reader.into_pages(), Err(self.ended(end, file)));
            };
            let gap = NotProven::Gap { end, file };
            self.tracked.lose_all(&gap);
            self.status.lose(end.record, &gap, |_| true);
            self.met.fill(false);
            self.own_checkpoint = Met::NotYet;
            (reader, found) = self.begin(reader.into_pages(), Start::Segment(next));
        }
    }

    /// A reader at the first record.
    fn begin(
        &mut self,
        pages: CopiedPages<'a>,
        start: Start,
    ) -> (WalReader<CopiedPages<'a>>, Result<(), WalEnd>) {
        let shape = self.course.shape;
        let (at, is_record) = match start {
            Start::At(lsn) => (lsn, true),
            Start::Segment(number) => {
                let at = number.saturating_mul(u64::from(shape.segment_bytes));
                (Lsn(at), false)
            }
        };
        let mut reader = WalReader::new(pages, shape, at);
        self.run_from = at;
        if is_record {
            return (reader, Ok(()));
        }
        let mut first = reader.find_first();
        while let Err(end) = first {
            if !reader.pages_mut().try_another_copy(end.at) {
                return (reader, Err(end));
            }
            first = reader.find_first();
        }
        self.run_from = reader.position();
        (reader, Ok(()))
    }

    /// The next segment, after a break, that some directory has.
    fn next_segment(&self, end: WalEnd) -> Option<u64> {
        let Course {
            shape,
            copies,
            timelines,
            goal,
            ..
        } = self.course;
        let broken = shape.segment_number(end.at.max(end.record));
        let last = shape.segment_number(goal.at);
        (broken.saturating_add(1)..=last).find(|number| copies.has(*number, timelines))
    }

    fn ended(&self, end: WalEnd, file: Option<String>) -> NotProven {
        NotProven::WalEnds {
            end,
            file,
            needed: self.course.goal.at,
            words: self.course.goal.words(),
        }
    }

    /// The end of a crashed cluster's WAL, or of that which a standby needs, has no record.
    fn is_reached(&self, end: WalEnd) -> bool {
        let goal = self.course.goal;
        goal.kind != GoalKind::ShutdownCheckpoint && end.record >= goal.at
    }

    /// The first record at the goal or after it.
    fn judge(&mut self, record: &WholeRecord<'_>) -> Result<(), NotProven> {
        let Course {
            goal,
            control,
            major,
            ..
        } = self.course;
        if goal.kind != GoalKind::ShutdownCheckpoint {
            return Ok(());
        }
        self.goal_end = record.end;
        let other = NotProven::OtherHistory { at: goal.at };
        let record = record.parse().map_err(|_| other.clone())?;
        let is_shutdown = matches!(
            Event::of(&record, major),
            Event::Checkpoint { shutdown: true, .. }
        );
        if !is_shutdown || !is_checkpoint_of(&record, major, control) {
            return Err(other);
        }
        // A copy may have been shut down with it, too.
        self.meet_copies(&record);
        Ok(())
    }

    /// Without a checkpoint at the goal, the one in the control file must have been met.
    fn other_history(&self) -> Option<NotProven> {
        let is_own = self.course.goal.kind == GoalKind::ShutdownCheckpoint
            || self.own_checkpoint == Met::Same;
        let at = self.course.control.checkpoint_lsn;
        (!is_own).then_some(NotProven::OtherHistory { at })
    }

    fn take(&mut self, record: &WholeRecord<'_>) {
        self.records += 1;
        let header = record.header;
        let may_be_event = match header.manager {
            XLOG => header.operation() <= 0x10 || header.operation() == PARAMETER_CHANGE,
            TRANSACTION => header.info & HAS_INFO != 0,
            STORAGE | DATABASE | TABLESPACE => true,
            _ => false,
        };
        let is_of_status = self.status.may_want(header);
        let tracked = &self.tracked;
        match record.is_about(|reference| tracked.may_want(reference)) {
            Ok(false) if !may_be_event && !is_of_status => return,
            Ok(_) => {}
            Err(_) => return self.makes_no_sense(record.lsn),
        }
        let Ok(record) = record.parse() else {
            return self.makes_no_sense(record.lsn);
        };
        self.tracked.take(&record, self.run_from);
        if is_of_status {
            self.status.take(&record);
        }
        if header.manager == XLOG && header.operation() == PARAMETER_CHANGE {
            self.tracked.doubt_ends();
        } else if may_be_event {
            self.event(&record);
        }
    }

    fn makes_no_sense(&mut self, lsn: Lsn) {
        let why = NotProven::RecordMakesNoSense { lsn };
        let touch = Touch {
            lsn,
            end: None,
            crc: 0,
        };
        self.tracked.lose(touch, &why, |_| true);
        self.status.lose(lsn, &why, |_| true);
    }

    fn event(&mut self, record: &Record<'_>) {
        let lsn = record.lsn;
        let touch = Touch {
            lsn,
            end: None,
            crc: record.header.crc,
        };
        let remade = NotProven::FileRemade { lsn };
        let database_remade = NotProven::DatabaseRemade { lsn };
        let tracked = &mut *self.tracked;
        match Event::of(record, self.course.major) {
            Event::Checkpoint { .. } => self.checkpoint(record),
            Event::Ended(ended) if ended.outcome != Outcome::Prepared => {
                for file in ended.files() {
                    tracked.lose(touch, &remade, |block| block.is_in(file));
                    tracked.end_at(0, |own| own == file);
                }
            }
            Event::Created(of) => {
                tracked.lose(touch, &remade, |block| block.is_of(of.file, of.fork));
                if of.fork == Fork::Main {
                    tracked.end_at(0, |own| own == of.file);
                }
            }
            Event::Truncated {
                file,
                blocks: Some(blocks),
            } => {
                let why = NotProven::Truncated { lsn };
                tracked.lose(touch, &why, |block| {
                    block.is_of(file, Fork::Main) && block.block >= blocks
                });
                tracked.end_at(blocks, |own| own == file);
            }
            Event::DatabaseCreated { database, .. } => {
                tracked.lose(touch, &database_remade, |block| {
                    block.file.database == database
                });
                tracked.copy_database(database);
            }
            Event::DatabaseDropped { database } => {
                tracked.lose(touch, &database_remade, |block| {
                    block.file.database == database
                });
                tracked.end_at(0, |own| own.database == database);
            }
            Event::TablespaceDropped(tablespace) => {
                tracked.lose(touch, &remade, |block| block.file.tablespace == tablespace);
                tracked.end_at(0, |own| own.tablespace == tablespace);
            }
            Event::Short => self.makes_no_sense(lsn),
            _ => {}
        }
    }

    /// Each copy is of this history up to its checkpoint, where the WAL has that.
    fn checkpoint(&mut self, record: &Record<'_>) {
        let (control, major) = (self.course.control, self.course.major);
        if record.lsn == control.checkpoint_lsn {
            self.own_checkpoint = if is_checkpoint_of(record, major, control) {
                Met::Same
            } else {
                Met::Other
            };
        }
        self.meet_copies(record);
    }

    /// The checkpoint may be that of copies.
    fn meet_copies(&mut self, record: &Record<'_>) {
        let major = self.course.major;
        for (met, copy) in self.met.iter_mut().zip(self.page_copies) {
            *met |= is_checkpoint_of(record, major, copy.control);
        }
    }
}
