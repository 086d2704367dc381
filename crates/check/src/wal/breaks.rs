//! Where WAL breaks though it must not: one list for the rules that each tell a part of it.

use pgclinic_cluster::wal::{CheckpointState, Recovery, StartKind, Stop};
use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_format::Lsn;
use pgclinic_format::wal::{EndReason, WalEnd};
use pgclinic_model::document::{FileKind, Place};
use pgclinic_model::{Rule, Severity};

use crate::findings::Draft;
use crate::wal::page_header::WAL_PAGE_HEADER;
use crate::wal::record_broken::WAL_RECORD_BROKEN;
use crate::wal::record_checksum::WAL_RECORD_CHECKSUM;
use crate::wal::segment_missing::WAL_SEGMENT_MISSING;

/// Which rule tells a break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WalRule {
    /// `wal-segment-missing`.
    Segment,
    /// `wal-page-header`.
    Page,
    /// `wal-record-checksum`.
    Checksum,
    /// `wal-record-broken`.
    Record,
}

impl WalRule {
    /// The rule that tells it.
    pub(crate) fn rule(self) -> &'static Rule {
        match self {
            WalRule::Segment => &WAL_SEGMENT_MISSING,
            WalRule::Page => &WAL_PAGE_HEADER,
            WalRule::Checksum => &WAL_RECORD_CHECKSUM,
            WalRule::Record => &WAL_RECORD_BROKEN,
        }
    }
}

/// A place where records stop before they must.
#[derive(Clone, Debug)]
pub(crate) struct Break {
    pub(crate) end: WalEnd,
    pub(crate) severity: Severity,
    /// What it means, to stand behind what was seen.
    pub(crate) meaning: String,
}

impl Break {
    pub(crate) fn teller(&self) -> WalRule {
        match self.end.why {
            EndReason::NoPage => WalRule::Segment,
            EndReason::Page(_) => WalRule::Page,
            EndReason::Crc { .. } => WalRule::Checksum,
            _ => WalRule::Record,
        }
    }

    /// What was seen and what it means, at its place.
    pub(crate) fn draft(&self, rule: &'static Rule, recovery: &Recovery) -> Draft {
        let message = format!("{}; {}", self.end, self.meaning);
        let draft = Draft::new(rule, message).severity(self.severity);
        draft
            .fact("lsn", self.end.record.to_string())
            .place(place_of(recovery, self.end.at))
    }
}

/// The place of a byte of WAL.
pub(crate) fn place_of(recovery: &Recovery, at: Lsn) -> Place {
    let shape = &recovery.shape;
    let number = shape.segment_number(at);
    let timeline = recovery.timelines.choose(&recovery.files, number);
    let timeline = timeline.map(|file| file.timeline);
    let timeline = timeline.or_else(|| recovery.timelines.expected(number));
    let name = shape.segment_name(timeline.unwrap_or(recovery.start.timeline), number);
    let offset = at.0 - shape.segment_of(at).0;
    Place {
        bytes: Some([offset, offset + 24]),
        ..file_place(format!("pg_wal/{name}"), FileKind::Wal)
    }
}

/// The break at which recovery would stop before it must.
pub(crate) fn in_recovery(cluster: &Cluster) -> Option<Break> {
    let (recovery, replay) = (cluster.recovery()?, cluster.replay()?);
    cluster.wal_survey()?;
    // What is there and cannot be read is a gap in what was looked at, and no break.
    if !replay.troubles.is_empty() {
        return None;
    }
    let control = cluster.control.trusted()?;
    let (start, end) = (recovery.start, replay.end);
    let before_checkpoint = end.record <= start.checkpoint && start.redo <= start.checkpoint;
    // The checkpoint record itself has a rule of its own.
    let at_checkpoint = end.record == start.checkpoint && start.redo == start.checkpoint;
    let (severity, meaning) = match (start.kind, replay.stop) {
        _ if at_checkpoint => return None,
        (StartKind::Crash, _) if before_checkpoint => (
            Severity::Damage,
            format!(
                "recovery begins at {} and has to go on at least to the checkpoint at {}",
                start.redo, start.checkpoint
            ),
        ),
        (StartKind::Crash, Stop::GoesOn { page }) => (
            Severity::Warning,
            format!(
                "recovery stops there, and sound WAL lies after it from {page} on: after a crash of the whole machine it may be what was never promised, otherwise transactions are lost"
            ),
        ),
        (StartKind::Archive, _) if end.record < control.min_recovery_point => {
            let least = control.min_recovery_point;
            let words = format!(
                "recovery needs WAL up to {least} before the files fit together, and must get it from elsewhere"
            );
            // What was never here is no damage.
            match end.why {
                EndReason::NoPage => (Severity::Note, words),
                _ => (Severity::Warning, words),
            }
        }
        (StartKind::Backup, _) if before_checkpoint && end.why == EndReason::NoPage => (
            Severity::Note,
            format!(
                "recovery of this base backup begins at {} and needs an archive or another server for its WAL",
                start.redo
            ),
        ),
        (StartKind::Backup, _) if before_checkpoint => (
            Severity::Warning,
            format!("recovery of this base backup begins at {}", start.redo),
        ),
        _ => return None,
    };
    let found = Break {
        end,
        severity,
        meaning,
    };
    let compared = cluster.may_compare(Comparison::AnythingWithWalEnd);
    compared.then_some(found)
}

/// Breaks in WAL that is older than what recovery needs, if the checkpoint is where it must be:
/// with another start, nothing is known of what lies before it. A segment that recovery needs is
/// told by its own rule.
pub(crate) fn in_older(cluster: &Cluster) -> Vec<Break> {
    let (Some(survey), Some(recovery)) = (cluster.wal_survey(), cluster.recovery()) else {
        return Vec::new();
    };
    let is_needed = |end: &&WalEnd| {
        let number = recovery.shape.segment_number(end.at);
        end.why == EndReason::NoPage && survey.missing.contains(&number)
    };
    let known = matches!(survey.checkpoint, CheckpointState::Found { .. });
    let Some(older) = cluster.older_wal().filter(|_| known) else {
        return Vec::new();
    };
    if older.breaks.is_empty() || !cluster.may_compare(Comparison::AnythingWithWalEnd) {
        return Vec::new();
    }
    let meaning = "this cluster does not need it any more, but standbys and archives that still wait for it do";
    let breaks = older.breaks.iter().filter(|end| !is_needed(end));
    let told = breaks.map(|end| Break {
        end: *end,
        severity: Severity::Warning,
        meaning: meaning.into(),
    });
    told.collect()
}
