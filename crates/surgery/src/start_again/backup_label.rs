//! `backup_label`: lost from a backup, left in a cluster that was never restored, or damaged.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{LabelState, Recovery};
use pgclinic_format::backup_manifest::WalRange;
use pgclinic_format::control_file::State;
use pgclinic_format::wal::{Event, WalReader};
use pgclinic_format::{BlockNo, Lsn};
use pgclinic_model::plan::Safety;
use pgclinic_source::Presence;

use super::tablespace_links::missing_links;
use super::{Draft, Found, Stops, recovery, remove, write};

pub(super) const MAKE: &str = "make-backup-label";
pub(super) const SET_ASIDE: &str = "set-backup-label-aside";
const LABEL: &str = "backup_label";
/// Records after the redo point among which the checkpoint's is looked for.
const RECORDS_MAX: BlockNo = 10_000_000;

/// What becomes of a base backup without its label: the control file names a checkpoint that is too
/// late, and files copied before it would never be made whole.
pub(super) fn lost(cluster: &Cluster) -> Option<Found> {
    let range = cluster.lost_label()?;
    if let Some(draft) = made(cluster, range) {
        return Some(vec![draft].into());
    }
    let mut found = Found::default();
    let why = format!(
        "backup_manifest lists it, and says that WAL is needed from {} to {}, which pg_wal does not have: --wal DIR of an archive brings it, and the label is made then. Without its label the server would begin at a later checkpoint, and leave files of the backup torn",
        range.start, range.end
    );
    found.leave_open(LABEL, Stops::Start, why);
    Some(found)
}

fn made(cluster: &Cluster, range: WalRange) -> Option<Draft> {
    let (text, checkpoint) = label_text(cluster, range)?;
    let len = text.len() as u64;
    let draft = Draft::new(
        MAKE,
        // Nothing tells that all of the files are of this backup.
        Safety::Lossy,
        LABEL,
        "the label is written again, so that recovery begins where the backup began",
    );
    let draft = draft
        .because(format!(
            "backup_manifest lists a backup_label, and says that WAL is needed from {} to {}",
            range.start, range.end
        ))
        .because(format!(
            "the checkpoint record with this redo point stands at {checkpoint}"
        ));
    let change = write(cluster, LABEL, text.into_bytes(), len);
    Some(draft.change("made from backup_manifest and WAL", change))
}

fn label_text(cluster: &Cluster, range: WalRange) -> Option<(String, Lsn)> {
    let plan = recovery::without_label(cluster)?;
    let checkpoint = checkpoint_after(cluster, &plan, range.start)?;
    let segment = plan
        .shape
        .segment_name(range.timeline, plan.shape.segment_number(range.start));
    let from = match cluster.control.trusted()?.state {
        State::InArchiveRecovery | State::ShutDownInRecovery => "standby",
        _ => "primary",
    };
    let text = format!(
        "START WAL LOCATION: {} (file {segment})\nCHECKPOINT LOCATION: {checkpoint}\nBACKUP METHOD: streamed\nBACKUP FROM: {from}\nSTART TIME: 2000-01-01 00:00:00 GMT\nLABEL: made by pgclinic\nSTART TIMELINE: {}\n",
        range.start, range.timeline
    );
    Some((text, checkpoint))
}

/// The record of the checkpoint that has this redo point.
fn checkpoint_after(cluster: &Cluster, plan: &Recovery, redo: Lsn) -> Option<Lsn> {
    let pages = plan.pages(cluster.source().as_ref());
    let mut reader = WalReader::new(pages, plan.shape, redo);
    for _ in 0..RECORDS_MAX {
        let record = reader.read().ok()?;
        match Event::of(&record, plan.shape.major) {
            Event::Checkpoint { checkpoint, .. } if checkpoint.redo == redo => {
                return Some(record.lsn);
            }
            _ => {}
        }
    }
    None
}

/// The label names a checkpoint that is not there, and the control file's own is: as in a cluster
/// that crashed during a backup and was not restored from it.
pub(super) fn left(cluster: &Cluster, recovery: &Recovery, why: &str) -> Option<Draft> {
    let LabelState::Read(label) = &recovery.label else {
        return None;
    };
    let own = recovery::without_label(cluster)?;
    if recovery::why_not(cluster, &own).is_some() || own.start.checkpoint <= label.checkpoint {
        return None;
    }
    let source = cluster.source().as_ref();
    let is_restored = !Presence::of_file(source, pgclinic_cluster::MANIFEST).is_missing();
    if is_restored {
        return None;
    }
    let draft = Draft::new(
        SET_ASIDE,
        Safety::Lossy,
        LABEL,
        "the label is set aside, so that recovery begins at the control file's checkpoint",
    );
    let draft = draft
        .because(why)
        .because(format!(
            "the control file's checkpoint at {} is later, and its record is in pg_wal",
            own.start.checkpoint
        ))
        .because("no backup_manifest is here: the server crashed during a backup")
        .warn("right where the server crashed while a backup was made; where this directory is itself a restored backup, its files stay torn: bring the missing WAL instead");
    Some(set_aside(cluster, draft))
}

/// A label that the server cannot read.
pub(super) fn damaged(cluster: &Cluster) -> Option<Draft> {
    let recovery = cluster.recovery()?;
    let LabelState::Wrong(line) = recovery.label else {
        return None;
    };
    if let Some(pgclinic_format::backup_manifest::BackupManifest { wal, .. }) = cluster.manifest()
        && let Some(range) = wal.first()
        && let Some(draft) = made(cluster, *range)
    {
        return Some(draft.because(format!("line {line} of backup_label is damaged")));
    }
    let draft = Draft::new(
        SET_ASIDE,
        Safety::Lossy,
        LABEL,
        "the damaged label is set aside, so that recovery begins at the control file's checkpoint",
    );
    let draft = draft
        .because(format!("line {line} of backup_label is damaged"))
        .warn("where this directory is a restored backup, its files stay torn");
    Some(set_aside(cluster, draft))
}

fn set_aside(cluster: &Cluster, draft: Draft) -> Draft {
    let draft = draft.change("set aside beside the journal", remove(LABEL));
    let draft = missing_links(cluster).into_iter().fold(draft, Draft::warn);
    Draft {
        rows_lost: None,
        ..draft
    }
}
