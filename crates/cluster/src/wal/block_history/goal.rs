//! How far WAL must reach, so that no later record of a block can be missing.

use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::wal::{Event, Record};
use pgclinic_format::{ControlFile, Lsn};

use super::outcome::NotProven;
use crate::cluster::Cluster;
use crate::state::State;
use crate::wal::{Recovery, StartKind};

/// Where the changes of the cluster's files end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Goal {
    /// Records that begin before it count.
    pub(super) at: Lsn,
    pub(super) kind: GoalKind,
    /// The timeline there.
    pub(super) timeline: u32,
}

/// What stands there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GoalKind {
    /// The record of the checkpoint with which the server was shut down.
    ShutdownCheckpoint,
    /// Nothing: a crashed server, or a backup, has no more WAL of its own.
    EndOfOwnWal,
    /// Whatever came next: pages of a standby are no newer.
    MinRecoveryPoint,
}

impl Goal {
    /// Of a cluster on which no server runs.
    pub(super) fn of(cluster: &Cluster) -> Result<(Goal, &Recovery, &ControlFile), NotProven> {
        match cluster.state() {
            State::Running { .. } => return Err(NotProven::ServerRuns),
            State::Partial | State::Streamed(_) => return Err(NotProven::FilesMissing),
            State::Stopped | State::Crashed { .. } => {}
        }
        let control = cluster.control.trusted().ok_or(NotProven::ControlFile)?;
        let recovery = cluster.recovery().ok_or(NotProven::ControlFile)?;
        let (kind, at, timeline) = match recovery.start.kind {
            StartKind::Settled => (
                GoalKind::ShutdownCheckpoint,
                control.checkpoint_lsn,
                control.checkpoint.timeline,
            ),
            StartKind::Crash | StartKind::Backup => {
                let replay = cluster.replay().filter(|replay| replay.is_complete());
                let replay = replay.ok_or(NotProven::OwnWal)?;
                let target = recovery.timelines.target();
                (GoalKind::EndOfOwnWal, replay.end.record, target)
            }
            StartKind::Archive if control.backup_start.0 != 0 => {
                return Err(NotProven::NotConsistent);
            }
            StartKind::Archive => (
                GoalKind::MinRecoveryPoint,
                control.min_recovery_point,
                control
                    .min_recovery_timeline
                    .max(control.checkpoint.timeline),
            ),
        };
        let goal = Goal { at, kind, timeline };
        (at.0 != 0)
            .then_some((goal, recovery, control))
            .ok_or(NotProven::NotConsistent)
    }

    /// What is written of the goal.
    pub(super) fn words(&self) -> &'static str {
        match self.kind {
            GoalKind::ShutdownCheckpoint => "the checkpoint with which the server was shut down",
            GoalKind::EndOfOwnWal => "the end of the cluster's own WAL",
            GoalKind::MinRecoveryPoint => "the minimum recovery point",
        }
    }
}

/// The record is the checkpoint that the control file has, to the second in which it was made.
pub(in crate::wal) fn is_checkpoint_of(
    record: &Record<'_>,
    major: u16,
    control: &ControlFile,
) -> bool {
    match Event::of(record, major) {
        Event::Checkpoint { checkpoint, .. } => {
            record.lsn == control.checkpoint_lsn && is_same(&checkpoint, control)
        }
        _ => false,
    }
}

/// While it replays, a standby takes a later `nextXid` into its copy (`xlog_redo` in `xlog.c`).
fn is_same(checkpoint: &Checkpoint, control: &ControlFile) -> bool {
    let own = &control.checkpoint;
    let raised = Checkpoint {
        next_full_xid: own.next_full_xid,
        ..checkpoint.clone()
    };
    let may_be_ahead = !control.is_shut_down() && own.next_full_xid >= checkpoint.next_full_xid;
    *checkpoint == *own || (may_be_ahead && raised == *own)
}
