//! The WAL of some files alone, for a server that rolls them forward: every record at its place,
//! those of other files as records that do nothing.
//!
//! ```text
//! redo point of a copy ── heap │ btree │ commit │ checkpoint ──► checkpoint of the shutdown
//!                         noop │ btree │ noop   │ checkpoint
//! ```
//!
//! A server that recovers with it asks for no file but these, and writes to no other; positions and
//! LSNs are those of the cluster. What recovery needs besides is kept: checkpoints, the end of the
//! backup, switches of segments. Truth: `PerformWalRecovery` in
//! `src/backend/access/transam/xlogrecovery.c`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;

use pgclinic_format::wal::{
    BlockReference, Event, FIRST_TIMELINE, FileNumber, Outcome, Shape, WalEnd, WalPages, WalReader,
    WholeRecord,
};
use pgclinic_format::{BlockNo, ControlFile, Fork, Lsn};
use pgclinic_model::Progress;

use super::copied_pages::CopiedPages;
use super::goal::{Goal, GoalKind, is_checkpoint_of};
use super::one_history::OneHistory;
use super::outcome::NotProven;
use super::page_copies::PageCopy;
use super::pass::{Course, Start};
use super::wal_copies::WalCopies;
use super::{BlockAddress, Evidence, all_copies, history_since, last_segment, page_copies_of};
use crate::block_set::BlockSet;
use crate::cluster::Cluster;
use crate::wal::files::Timelines;

const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const STORAGE: u8 = 2;
const DATABASE: u8 = 4;
const TABLESPACE: u8 = 5;
/// Bytes of WAL after which the progress is reported.
const STEP_BYTES: u64 = 1 << 20;

/// Takes segments of WAL, in pieces.
pub trait SegmentSink {
    /// So many bytes of segments will come at most.
    ///
    /// # Errors
    ///
    /// There is no room for them.
    fn expect(&mut self, bytes: u64) -> io::Result<()>;

    /// Bytes of the segment of this name, which is as long as `segment_bytes`, at an offset.
    ///
    /// # Errors
    ///
    /// They cannot be kept.
    fn put(&mut self, segment: SegmentPlace<'_>, bytes: &[u8]) -> io::Result<()>;
}

/// A place in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentPlace<'a> {
    /// Name of its file.
    pub name: &'a str,
    /// Bytes of the whole segment.
    pub segment_bytes: u64,
    /// Where.
    pub offset: u64,
}

/// What a server needs to roll some files of a copy forward, beside the WAL that a sink has.
pub struct WalOfFiles<'a> {
    /// The copy, which is a base backup or was shut down in good order.
    pub copy: &'a Cluster,
    /// How the user named it.
    pub name: String,
    /// Recovery begins here …
    pub redo: Lsn,
    /// … and ends with this record.
    pub goal: Lsn,
    /// What stands there.
    pub goal_words: &'static str,
    /// The timeline there.
    pub timeline: u32,
    /// Name and text of its history, where it has one.
    pub history: Option<(String, String)>,
    /// The blocks of main forks that records speak of, and those that are wanted.
    pub touched: BTreeMap<FileNumber, BlockSet>,
    /// What records say of each block that is wanted.
    pub blocks: BTreeMap<BlockAddress, BlockRecords>,
}

/// The records of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockRecords {
    /// How many there are.
    pub records: u64,
    /// Where the last one ends, which is the LSN that it leaves on the page; 0 without one.
    pub last_end: Lsn,
    /// One of them writes the whole page, whatever the copy has.
    pub is_rewritten: bool,
}

/// Why there is no such WAL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoWalOfFiles {
    /// In words.
    pub why: String,
    /// It lies in one of the files: the others may have theirs.
    pub is_of_one_file: bool,
}

impl From<NotProven> for NoWalOfFiles {
    fn from(why: NotProven) -> Self {
        let is_of_one_file = matches!(
            why,
            NotProven::FileRemade { .. } | NotProven::DatabaseRemade { .. }
        );
        NoWalOfFiles {
            is_of_one_file,
            why: why.to_string(),
        }
    }
}

impl From<String> for NoWalOfFiles {
    fn from(why: String) -> Self {
        NoWalOfFiles {
            why,
            is_of_one_file: false,
        }
    }
}

/// Gives the WAL that the files of these blocks need, from the newest copy that recovery can begin
/// with up to the shutdown of the cluster.
///
/// # Errors
///
/// Why there is none: no copy, a gap, a record that makes or removes one of the files otherwise.
pub fn wal_of_files<'a>(
    cluster: &Cluster,
    wanted: &[BlockAddress],
    evidence: &'a Evidence<'a>,
    sink: &mut dyn SegmentSink,
    progress: &dyn Progress,
) -> Result<WalOfFiles<'a>, NoWalOfFiles> {
    let (goal, recovery, control) = Goal::of(cluster)?;
    if goal.kind != GoalKind::ShutdownCheckpoint {
        return Err("the cluster was not shut down in good order"
            .to_owned()
            .into());
    }
    let copies = all_copies(cluster, evidence, recovery);
    let timelines = Timelines::to(goal.timeline, &copies.histories, &recovery.shape);
    let course = Course {
        shape: recovery.shape,
        copies: &copies,
        timelines: &timelines,
        history: &OneHistory::default(),
        goal,
        control,
        major: cluster.layout.major,
    };
    let (page_copies, refused) = page_copies_of(cluster, evidence, &course);
    let copy = page_copies.iter().find(|copy| copy.starts_a_recovery());
    let copy = copy.ok_or_else(|| no_copy(&refused))?;
    let history = history_since(cluster, &course, Start::At(copy.redo));
    if let Some(open) = &history.open {
        return Err(open.why().to_string().into());
    }
    let course = Course {
        history: &history,
        ..course
    };
    let mut pass = FilesPass::new(wanted, &course, copy);
    pass.run(sink, progress)?;
    Ok(WalOfFiles {
        copy: copy.cluster,
        name: copy.name.to_owned(),
        redo: copy.redo,
        goal: goal.at,
        goal_words: goal.words(),
        timeline: goal.timeline,
        history: history_file(&copies, goal.timeline),
        touched: pass.touched,
        blocks: pass.blocks,
    })
}

fn no_copy(refused: &[String]) -> String {
    let why = "a server can begin with a base backup, or with a copy that was shut down in good order, and no usable one was named";
    match refused {
        [] => why.into(),
        refused => format!("{why}: {}", refused.join("; ")),
    }
}

/// `readTimeLineHistory` in `timeline.c` wants timeline and place in each line; the server asks for
/// the file of any timeline but the first, and takes an empty one.
fn history_file(copies: &WalCopies, timeline: u32) -> Option<(String, String)> {
    if timeline <= FIRST_TIMELINE {
        return None;
    }
    let history = copies.histories.history_or_switches(timeline);
    let mut text = String::new();
    for switch in history.iter().flat_map(|own| &own.switches) {
        let (number, at) = (switch.timeline, switch.at);
        writeln!(
            text,
            "{number}\t{at}\tas the history of timeline {timeline} has it"
        )
        .ok()?;
    }
    Some((format!("{timeline:08X}.history"), text))
}

/// The one pass over WAL, from the redo point of the copy to the goal.
struct FilesPass<'a, 'b> {
    course: &'b Course<'b>,
    copy: &'b PageCopy<'a>,
    files: BTreeSet<FileNumber>,
    touched: BTreeMap<FileNumber, BlockSet>,
    blocks: BTreeMap<BlockAddress, BlockRecords>,
    /// The checkpoint of the copy was met.
    is_met: bool,
}

impl<'a, 'b> FilesPass<'a, 'b> {
    fn new(wanted: &[BlockAddress], course: &'b Course<'b>, copy: &'b PageCopy<'a>) -> Self {
        let mut touched: BTreeMap<FileNumber, BlockSet> = BTreeMap::new();
        for address in wanted {
            touched
                .entry(address.file)
                .or_default()
                .insert(address.block);
        }
        let none = |address: &BlockAddress| (*address, BlockRecords::default());
        FilesPass {
            course,
            copy,
            files: touched.keys().copied().collect(),
            touched,
            blocks: wanted.iter().map(none).collect(),
            is_met: false,
        }
    }

    fn run(
        &mut self,
        sink: &mut dyn SegmentSink,
        progress: &dyn Progress,
    ) -> Result<(), NoWalOfFiles> {
        let (shape, goal, redo) = (self.course.shape, self.course.goal.at, self.copy.redo);
        let first = shape.segment_number(redo);
        let segments = last_segment(self.course).saturating_sub(first) + 1;
        let bytes = segments.saturating_mul(u64::from(shape.segment_bytes));
        sink.expect(bytes).map_err(|error| error.to_string())?;
        progress.expect(goal.0.saturating_sub(redo.0));
        let mut reader = WalReader::new(SegmentWriter::new(self.course, sink), shape, redo);
        let mut reported = redo;
        loop {
            let record = match reader.read_whole() {
                Ok(record) => record,
                Err(end) => {
                    let file = reader.pages().pages.words_at(end.at);
                    reader
                        .pages_mut()
                        .try_another_copy(end)
                        .ok_or_else(|| self.ended(end, file))??;
                    continue;
                }
            };
            let (lsn, end) = (record.lsn, record.end);
            let noop = if self.takes(&record)? {
                None
            } else {
                record.noop()
            };
            let is_last = lsn >= goal;
            if is_last {
                self.judge(&record)?;
            }
            reader.pages_mut().settle((lsn, end), noop)?;
            if is_last {
                return Ok(());
            }
            let step = end.0.saturating_sub(reported.0);
            if step >= STEP_BYTES {
                reported = end;
                progress.advance(step);
                if progress.is_interrupted() {
                    return Err(NotProven::Interrupted.into());
                }
            }
        }
    }

    fn ended(&self, end: WalEnd, file: Option<String>) -> String {
        let goal = self.course.goal;
        let why = NotProven::WalEnds {
            end,
            file,
            needed: goal.at,
            words: goal.words(),
        };
        why.to_string()
    }

    /// The checkpoint with which the server was shut down is the one that the control file has, and
    /// that of the copy came before.
    fn judge(&self, record: &WholeRecord<'_>) -> Result<(), NotProven> {
        let Course {
            goal,
            control,
            major,
            ..
        } = *self.course;
        let other = NotProven::OtherHistory { at: goal.at };
        let own = record.parse().map_err(|_| other.clone())?;
        if !is_checkpoint_of(&own, major, control) {
            return Err(other);
        }
        let copy: &ControlFile = self.copy.control;
        if self.is_met {
            return Ok(());
        }
        Err(NotProven::CopyOfOtherHistory {
            name: self.copy.name.to_owned(),
            at: copy.checkpoint_lsn,
        })
    }

    /// The server gets this record as it is.
    fn takes(&mut self, record: &WholeRecord<'_>) -> Result<bool, NotProven> {
        let no_sense = NotProven::RecordMakesNoSense { lsn: record.lsn };
        let mut has_blocks = false;
        let is_about = record.is_about(|reference| {
            has_blocks = true;
            self.note(reference, record.end)
        });
        let is_about = is_about.map_err(|_| no_sense.clone())?;
        let manager = record.header.manager;
        if !matches!(
            manager,
            XLOG | TRANSACTION | STORAGE | DATABASE | TABLESPACE
        ) || has_blocks
        {
            return Ok(is_about);
        }
        let parsed = record.parse().map_err(|_| no_sense.clone())?;
        let is_of = |file: &FileNumber| self.files.contains(file);
        let lsn = record.lsn;
        match Event::of(&parsed, self.course.major) {
            Event::Short => return Err(no_sense),
            Event::Checkpoint { .. } => {
                self.is_met |= is_checkpoint_of(&parsed, self.course.major, self.copy.control);
            }
            Event::Created(of) => return Ok(is_of(&of.file)),
            Event::Truncated { file, .. } => return Ok(is_of(&file)),
            Event::Ended(ended)
                if ended.outcome != Outcome::Prepared && ended.files().any(|file| is_of(&file)) =>
            {
                return Err(NotProven::FileRemade { lsn });
            }
            Event::DatabaseCreated { database, .. } | Event::DatabaseDropped { database }
                if self.files.iter().any(|own| own.database == database) =>
            {
                return Err(NotProven::DatabaseRemade { lsn });
            }
            Event::TablespaceDropped(tablespace)
                if self.files.iter().any(|own| own.tablespace == tablespace) =>
            {
                return Err(NotProven::FileRemade { lsn });
            }
            _ => {}
        }
        Ok(manager == XLOG)
    }

    /// A block of one of the files.
    fn note(&mut self, reference: &BlockReference<'_>, end: Lsn) -> bool {
        let Some(touched) = self.touched.get_mut(&reference.file) else {
            return false;
        };
        if reference.fork == Fork::Main {
            touched.insert(reference.block);
        }
        let address = BlockAddress {
            file: reference.file,
            fork: reference.fork,
            block: reference.block,
        };
        if let Some(own) = self.blocks.get_mut(&address) {
            own.records += 1;
            own.last_end = end;
            own.is_rewritten |= reference.rewrites();
        }
        true
    }
}

/// Pages on their way to a reader, each written as it is; what the reader is done with is written
/// over where a record does nothing.
struct SegmentWriter<'a, 's> {
    pages: CopiedPages<'a>,
    shape: Shape,
    timelines: &'a Timelines,
    sink: &'s mut dyn SegmentSink,
    /// The page that was written last.
    written: Option<Lsn>,
    /// What stands before is final.
    settled: Lsn,
    error: Option<io::Error>,
}

impl<'a, 's> SegmentWriter<'a, 's> {
    fn new(course: &Course<'a>, sink: &'s mut dyn SegmentSink) -> Self {
        SegmentWriter {
            pages: CopiedPages::new(
                course.shape,
                course.copies,
                course.timelines,
                course.history,
            ),
            shape: course.shape,
            timelines: course.timelines,
            sink,
            written: None,
            settled: Lsn(0),
            error: None,
        }
    }

    /// After an end: the record is tried again, or there is no other copy, or nothing can be
    /// written.
    fn try_another_copy(&mut self, end: WalEnd) -> Option<Result<(), String>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error.to_string()));
        }
        self.written = None;
        self.pages.try_another_copy(end.record).then_some(Ok(()))
    }

    /// The record from `begin` to `end` is read.
    fn settle(&mut self, (begin, end): (Lsn, Lsn), noop: Option<Vec<u8>>) -> Result<(), String> {
        self.settled = end;
        let page_bytes = u64::from(self.shape.page_bytes);
        let mut at = begin;
        let mut rest = noop.as_deref().unwrap_or_default();
        while !rest.is_empty() {
            let page = self.shape.page_of(at);
            if at == page {
                at = Lsn(at.0 + self.shape.page_header_bytes(page));
            }
            let room = usize::try_from(page.0 + page_bytes - at.0).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(room.min(rest.len()));
            put(self.sink, &self.shape, self.timelines, at, now)
                .map_err(|error| error.to_string())?;
            at = Lsn(at.0 + now.len() as u64);
            rest = later;
        }
        Ok(())
    }
}

impl WalPages for SegmentWriter<'_, '_> {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        let page = self.pages.page(at)?;
        if self.written != Some(at) {
            let settled = usize::try_from(self.settled.0.saturating_sub(at.0)).ok()?;
            let open = page.get(settled.min(page.len())..)?;
            let from = Lsn(at.0 + (page.len() - open.len()) as u64);
            if let Err(error) = put(self.sink, &self.shape, self.timelines, from, open) {
                self.error = Some(error);
                return None;
            }
            self.written = Some(at);
        }
        Some(page)
    }
}

/// Names follow from the way through the timelines, as the server looks for them.
fn put(
    sink: &mut dyn SegmentSink,
    shape: &Shape,
    timelines: &Timelines,
    at: Lsn,
    bytes: &[u8],
) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let number = shape.segment_number(at);
    let timeline = timelines.expected(number).unwrap_or(timelines.target());
    let place = SegmentPlace {
        name: &shape.segment_name(timeline, number),
        segment_bytes: shape.segment_bytes.into(),
        offset: at.0 - shape.segment_of(at).0,
    };
    sink.put(place, bytes)
}

/// Where the blocks of a main fork lie that a server rolls forward: the path of the segment's file,
/// and the offset there.
pub fn place_of_block(cluster: &Cluster, file: FileNumber, block: BlockNo) -> (String, u64) {
    let whole = cluster.build.segment_blocks().max(1);
    let segment = u32::try_from(u64::from(block) / whole).unwrap_or(u32::MAX);
    let offset = u64::from(block) % whole * u64::from(cluster.build.block_size);
    let path = crate::file_name::relation_path(cluster.layout, file, Fork::Main, segment);
    (path, offset)
}
