//! Where recovery would begin, on which timeline, and from what.

use std::sync::Arc;

use pgclinic_format::backup_label::BackupLabel;
use pgclinic_format::control_file::State;
use pgclinic_format::wal::Shape;
use pgclinic_format::{ControlFile, Layout, Lsn};
use pgclinic_source::{Presence, Source, SourceErrorKind, read_all};

use crate::wal::files::{Timelines, WalFiles};
use crate::wal::pages::SegmentPages;

/// Bytes of a `backup_label` that are read.
const LABEL_BYTES: u64 = 64 << 10;

/// `backup_label`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelState {
    /// There is none.
    None,
    /// Read.
    Read(BackupLabel),
    /// This line is not as it must be, from 1.
    Wrong(usize),
    /// It cannot be read.
    Unreadable(String),
}

impl LabelState {
    /// Reads the file.
    pub fn read(source: &dyn Source) -> Self {
        match read_all(source, "backup_label", LABEL_BYTES) {
            Ok(bytes) => match BackupLabel::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(label) => LabelState::Read(label),
                Err(line) => LabelState::Wrong(line),
            },
            Err(error) if error.kind == SourceErrorKind::NotFound => LabelState::None,
            Err(error) => LabelState::Unreadable(error.to_string()),
        }
    }
}

/// Why there is something to replay, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartKind {
    /// Shut down in good order.
    Settled,
    /// Crashed: `pg_wal` has all there is.
    Crash,
    /// A base backup, whose WAL may lie elsewhere.
    Backup,
    /// A standby, or a recovery from an archive: WAL may lie elsewhere.
    Archive,
}

/// Where replay begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Why.
    pub kind: StartKind,
    /// The first record that is replayed.
    pub redo: Lsn,
    /// The checkpoint record.
    pub checkpoint: Lsn,
    /// The timeline of that record.
    pub timeline: u32,
}

/// All that recovery would look at first.
#[derive(Clone, PartialEq, Debug)]
pub struct Recovery {
    /// What the WAL looks like.
    pub shape: Shape,
    /// What lies in `pg_wal`.
    pub files: Arc<WalFiles>,
    /// `backup_label`.
    pub label: LabelState,
    /// Where replay begins.
    pub start: Start,
    /// Which file holds a segment.
    pub timelines: Timelines,
}

impl Recovery {
    /// By the control file and what lies beside it; nothing when the control file's sizes make no
    /// sense.
    pub fn plan(
        source: &dyn Source,
        layout: &Layout,
        control: &ControlFile,
        label: LabelState,
    ) -> Option<Self> {
        let shape = Shape::new(
            layout,
            Some(control.system_identifier),
            control.xlog_blcksz,
            control.xlog_seg_size,
            control.blcksz,
        )?;
        let files = Arc::new(WalFiles::list(source, &shape));
        let signal = is_signalled(source);
        let start = match &label {
            LabelState::Read(label) => Start {
                kind: StartKind::Backup,
                redo: label.start,
                checkpoint: label.checkpoint,
                timeline: label.timeline.unwrap_or(control.checkpoint.timeline),
            },
            _ => start_of(control, signal),
        };
        let target = target(&start, signal, control, &files);
        let timelines = way_to(target, &start, control, &files, &shape);
        Some(Recovery {
            shape,
            files,
            label,
            start,
            timelines,
        })
    }

    /// The same with the files that lie in `pg_wal` now.
    pub(crate) fn relisted(&self, source: &dyn Source) -> Self {
        Recovery {
            files: Arc::new(WalFiles::list(source, &self.shape)),
            ..self.clone()
        }
    }

    /// Reads pages on the way that recovery takes.
    pub fn pages<'a>(&self, source: &'a dyn Source) -> SegmentPages<'a> {
        SegmentPages::new(
            source,
            self.shape,
            Arc::clone(&self.files),
            self.timelines.clone(),
        )
    }
}

/// The server is told to recover from an archive or to follow another server.
pub(crate) fn is_signalled(source: &dyn Source) -> bool {
    // The server only asks whether something has the name.
    let there = |path: &str| match Presence::of_file(source, path) {
        Presence::There(_) => true,
        Presence::Missing => false,
        Presence::Unreadable(error) => error.kind != SourceErrorKind::Dangling,
    };
    there("standby.signal") || there("recovery.signal")
}

fn start_of(control: &ControlFile, signal: bool) -> Start {
    let kind = match control.state {
        State::ShutDown => StartKind::Settled,
        State::ShutDownInRecovery | State::InArchiveRecovery => StartKind::Archive,
        _ if signal => StartKind::Archive,
        _ => StartKind::Crash,
    };
    Start {
        kind,
        redo: control.checkpoint.redo,
        checkpoint: control.checkpoint_lsn,
        timeline: control.checkpoint.timeline,
    }
}

/// The way to `target`. After a promotion that no checkpoint followed, the minimum recovery point
/// is the end of the record that names both timelines (`CreateEndOfRecoveryRecord`): where no
/// history tells where the older one was left, it was not later.
fn way_to(
    target: u32,
    start: &Start,
    control: &ControlFile,
    files: &WalFiles,
    shape: &Shape,
) -> Timelines {
    let is_told = target == start.timeline || files.history_or_switches(target).is_some();
    match control.min_recovery_point.0.checked_sub(1) {
        Some(switched) if !is_told && start.kind == StartKind::Crash => {
            Timelines::guessed(target, shape.segment_number(Lsn(switched)), start.timeline)
        }
        _ => Timelines::to(target, files, shape),
    }
}

/// The timeline at the end of the way: recovery from an archive goes to the latest one that
/// descends from where it begins. A server that was promoted and crashed before its first
/// checkpoint goes on where it wrote last (`InitWalRecovery`).
fn target(start: &Start, signal: bool, control: &ControlFile, files: &WalFiles) -> u32 {
    let own = match control.min_recovery_timeline {
        later if start.kind != StartKind::Backup && later > start.timeline => later,
        _ => start.timeline,
    };
    if !signal && start.kind != StartKind::Archive {
        return own;
    }
    let descends = |timeline: &u32| {
        files
            .history(*timeline)
            .is_some_and(|history| history.left(own).is_some())
    };
    let later = files.histories.keys().filter(|timeline| **timeline > own);
    later.copied().filter(descends).max().unwrap_or(own)
}
