//! A control file that is older than the cluster, as one that was copied back alone from a backup.
//!
//! ```text
//! pg_control ─► checkpoint ······ gone, or others after it ······ last checkpoint ─► end of pg_wal
//!                                    pages carry LSNs from here ──┘
//! ```
//!
//! A crash between a checkpoint's record and its entry in the control file leaves that one record
//! behind, and recovery begins before it: that is no damage. The file is older where its checkpoint
//! is in `pg_wal` no more, or where it says that the server was shut down and records follow: there
//! a server would go on without recovery, and write over them. Truth: `StartupXLOG` in
//! `src/backend/access/transam/xlog.c`.

use std::collections::HashMap;

use pgclinic_format::control_file::State;
use pgclinic_format::wal::{FileNumber, Record, WalReader};
use pgclinic_format::{BlockNo, ControlFile, Fork, Layout, Lsn};
use pgclinic_source::Source;

use crate::build::Build;
use crate::control_state::ControlState;
use crate::wal::block_history::is_checkpoint_of;
use crate::wal::foreign_control::{BLOCKS_MAX, BLOCKS_NEEDED, SEGMENTS_MAX, lsn_of};
use crate::wal::last_checkpoint::Search;
use crate::wal::pages::SegmentPages;
use crate::wal::recovery::{LabelState, Recovery, is_signalled};

const XLOG: u8 = 0;
const HEAP2: u8 = 9;
const HASH: u8 = 12;
/// `XLOG_HEAP2_VISIBLE`, which leaves the LSN of the heap page where hints are not logged.
const VISIBLE: u8 = 0x40;

/// The control file as it is, or named as older than the cluster.
pub(crate) fn judge_age(
    source: &dyn Source,
    layout: &Layout,
    control: ControlState,
    label: &LabelState,
) -> ControlState {
    // A label or a signal says where recovery begins, and WAL may come from elsewhere.
    let is_alone = *label == LabelState::None && !is_signalled(source);
    match control {
        ControlState::Right(control) if is_alone => {
            match later_checkpoint(source, layout, &control) {
                Some(checkpoint) => ControlState::Older {
                    control,
                    checkpoint,
                },
                None => ControlState::Right(control),
            }
        }
        other => other,
    }
}

/// The last checkpoint in `pg_wal`, where the control file is older than that.
fn later_checkpoint(source: &dyn Source, layout: &Layout, control: &ControlFile) -> Option<Lsn> {
    let is_of_primary = matches!(
        control.state,
        State::ShutDown | State::ShuttingDown | State::InCrashRecovery | State::InProduction
    );
    if !is_of_primary || control.backup_start.0 != 0 {
        return None;
    }
    let plan = Recovery::plan(source, layout, control, LabelState::None)?;
    if plan.files.is_unreadable {
        return None;
    }
    let own = own_checkpoint(source, &plan, control);
    if own == OwnCheckpoint::Fits {
        return None;
    }
    let build = Build::of(control)?;
    let mut search = Search::new(source, plan.shape)?;
    let (at, checkpoint) = search.last()?;
    let is_later = at > control.checkpoint_lsn || own == OwnCheckpoint::WrittenOver;
    let span = Span {
        from: control.checkpoint_lsn,
        redo: checkpoint.redo,
    };
    let is_proven = is_later
        && hangs_together(&search, checkpoint.redo, at)
        && pages_are_later(source, &search, build, span);
    is_proven.then_some(at)
}

/// What becomes of the checkpoint that the control file names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OwnCheckpoint {
    /// Recovery can begin there, or none is needed.
    Fits,
    /// Recovery cannot begin there.
    Gone,
    /// The server was shut down with it, it says, and would write over the records that follow.
    WrittenOver,
}

fn own_checkpoint(source: &dyn Source, plan: &Recovery, control: &ControlFile) -> OwnCheckpoint {
    let at = control.checkpoint_lsn;
    let mut reader = WalReader::new(plan.pages(source), plan.shape, at);
    let is_there = reader
        .read()
        .is_ok_and(|record| is_checkpoint_of(&record, plan.shape.major, control));
    let is_shut_down = control.state == State::ShutDown;
    if is_there && is_shut_down && goes_on(&mut reader) {
        return OwnCheckpoint::WrittenOver;
    }
    if is_there && (is_shut_down || is_reached(source, plan, control.checkpoint.redo, at)) {
        return OwnCheckpoint::Fits;
    }
    OwnCheckpoint::Gone
}

/// A server has written since. When it starts it may note its settings first, without having begun.
fn goes_on(reader: &mut WalReader<SegmentPages<'_>>) -> bool {
    while let Ok(record) = reader.read_whole() {
        if record.header.manager != XLOG {
            return true;
        }
    }
    false
}

/// The first record that recovery reads is there, and no segment is missing up to the checkpoint.
fn is_reached(source: &dyn Source, plan: &Recovery, redo: Lsn, checkpoint: Lsn) -> bool {
    let numbers = plan.shape.segment_number(redo)..=plan.shape.segment_number(checkpoint);
    let mut numbers = numbers.into_iter();
    let is_there = |number| plan.timelines.choose(&plan.files, number).is_some();
    let mut reader = WalReader::new(plan.pages(source), plan.shape, redo);
    redo <= checkpoint && numbers.all(is_there) && reader.read().is_ok()
}

/// Records follow each other from one place to another.
fn hangs_together(search: &Search<'_>, from: Lsn, to: Lsn) -> bool {
    let mut reader = WalReader::new(search.pages(), search.shape(), from);
    while let Ok(record) = reader.read_whole() {
        if record.lsn >= to {
            return record.lsn == to;
        }
    }
    false
}

/// The WAL whose changes pages should have.
#[derive(Clone, Copy)]
struct Span {
    /// What came after it the control file does not know.
    from: Lsn,
    /// What came before it the last checkpoint has written.
    redo: Lsn,
}

/// Some pages carry the LSN of their last record, and none lacks what the last checkpoint wrote:
/// the data files are not as old as the control file.
fn pages_are_later(source: &dyn Source, search: &Search<'_>, build: Build, span: Span) -> bool {
    let mut later = 0;
    for number in search.newest_first().take(SEGMENTS_MAX) {
        let ends = last_ends(search, number, span);
        for ((file, block), ends) in &ends {
            let Some(lsn) = lsn_of(source, build, *file, *block).filter(|lsn| lsn.0 != 0) else {
                continue;
            };
            if ends.before_redo.is_some_and(|end| lsn < end) {
                return false;
            }
            later += usize::from(lsn == ends.last);
        }
    }
    later >= BLOCKS_NEEDED
}

/// Where the last records of a block end, of those that begin in a segment.
struct LastEnds {
    last: Lsn,
    /// Of those before the redo point.
    before_redo: Option<Lsn>,
}

fn last_ends(
    search: &Search<'_>,
    number: u64,
    span: Span,
) -> HashMap<(FileNumber, BlockNo), LastEnds> {
    let mut ends: HashMap<(FileNumber, BlockNo), LastEnds> = HashMap::new();
    search.each_record(number, |record| {
        if record.lsn > span.from && leaves_its_lsn(record) {
            let main = record.blocks.iter().filter(|own| own.fork == Fork::Main);
            for own in main {
                let before = ends.get(&(own.file, own.block));
                let before = before.and_then(|before| before.before_redo);
                let is_before = record.end <= span.redo;
                let own_ends = LastEnds {
                    last: record.end,
                    before_redo: if is_before { Some(record.end) } else { before },
                };
                ends.insert((own.file, own.block), own_ends);
            }
        }
        ends.len() < BLOCKS_MAX
    });
    ends
}

/// Each page that the record names carries its end. Records of hash indexes also name pages that
/// they only lock.
fn leaves_its_lsn(record: &Record<'_>) -> bool {
    let header = record.header;
    let is_of_visibility = header.manager == HEAP2 && header.operation() & 0x70 == VISIBLE;
    !is_of_visibility && header.manager != HASH
}
