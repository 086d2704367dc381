//! Where a copy stands in the WAL, and what that says of a page that is older there.

use std::cmp::Ordering;

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{ReplayEffect, Stop};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Lsn};
use pgclinic_model::document::{Copy, CopyPosition};

use crate::timelines::timeline_at;

/// A copy's position in the WAL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    /// Every change before it was written to the files.
    pub(crate) redo: Lsn,
    /// The end of the WAL that the copy has, or of its life.
    pub(crate) end: Lsn,
    /// The timeline there.
    pub(crate) timeline: u32,
    /// Recovery goes on with WAL that lies elsewhere.
    pub(crate) elsewhere: bool,
}

/// What a copy's WAL says of a version of a page that it does not have yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WalExplains {
    /// Replay changes the block.
    Yes,
    /// Replay passes the place and leaves the block alone.
    No,
    /// It is later than all WAL of the copy.
    Later,
    /// A checkpoint before it has written all of its time.
    TooLate,
}

impl Position {
    /// Nothing without a control file to trust.
    pub(crate) fn of(cluster: &Cluster) -> Option<Self> {
        let control = cluster.control.trusted()?;
        let recovery = cluster.recovery()?;
        let (end, elsewhere) = match cluster.replay() {
            None => (control.checkpoint_lsn, false),
            Some(replay) => (
                replay.end.record.max(control.min_recovery_point),
                replay.stop == Stop::Elsewhere,
            ),
        };
        Some(Position {
            redo: recovery.start.redo,
            end,
            timeline: timeline_at(recovery, end),
            elsewhere,
        })
    }

    /// Which of two copies is the older. Copies whose WAL ends at one place may still be of two
    /// moments, as a backup is and the idle server that it was taken from: the one that begins to
    /// recover earlier has the older files.
    pub(crate) fn older(a: Position, b: Position) -> Option<Copy> {
        match (a.end, a.redo).cmp(&(b.end, b.redo)) {
            Ordering::Less => Some(Copy::A),
            Ordering::Equal => None,
            Ordering::Greater => Some(Copy::B),
        }
    }

    /// What the WAL of `cluster` says of the version with this LSN, which another copy has.
    pub(crate) fn brings(
        self,
        cluster: &Cluster,
        file: FileNumber,
        fork: Fork,
        block: BlockNo,
        lsn: Lsn,
    ) -> WalExplains {
        if lsn <= self.redo {
            return WalExplains::TooLate;
        }
        if lsn > self.end {
            return WalExplains::Later;
        }
        let fate = cluster
            .replay()
            .map(|replay| replay.fate(file, fork, block));
        match fate {
            Some(ReplayEffect::Kept) | None => WalExplains::No,
            Some(
                ReplayEffect::Rewritten
                | ReplayEffect::Removed
                | ReplayEffect::Read
                | ReplayEffect::Unknown,
            ) => WalExplains::Yes,
        }
    }

    pub(crate) fn told(self) -> CopyPosition {
        CopyPosition {
            redo: self.redo.to_string(),
            end: self.end.to_string(),
            timeline: Some(self.timeline),
            goes_on_elsewhere: self.elsewhere,
        }
    }
}
