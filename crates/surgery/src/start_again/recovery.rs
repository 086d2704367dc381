//! Whether recovery can begin and reach its end with the WAL that is there, and what is done where
//! it cannot.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::{CheckpointState, LabelState, Recovery, StartKind, WalSurvey};
use pgclinic_format::Lsn;
use pgclinic_format::control_file::places;
use pgclinic_format::wal::WalReader;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};
use pgclinic_source::Presence;

use super::{
    CONTROL_FILE, Found, StartOptions, Stops, backup_label, control_bytes, control_file, reset_wal,
};
use crate::error::Result;

/// Why the server cannot begin, in words; nothing where it can, as far as files tell.
pub(super) fn why_not(cluster: &Cluster, recovery: &Recovery) -> Option<String> {
    let source = cluster.source().as_ref();
    if recovery.files.is_unreadable {
        return None;
    }
    let survey = WalSurvey::take(source, recovery);
    let at = recovery.start.checkpoint;
    let why = match &survey.checkpoint {
        CheckpointState::Found { .. } => None,
        CheckpointState::NoSegment => Some(format!(
            "the segment of pg_wal with the checkpoint record at {at} is not there"
        )),
        // Nobody knows what is in it.
        CheckpointState::Unreadable(_) => return None,
        CheckpointState::NoRecord(end) => {
            Some(format!("no checkpoint record stands at {at}: {}", end.why))
        }
        CheckpointState::Other { manager, info } => Some(format!(
            "the record at {at} is of another kind (manager {manager}, info {info:#04x})"
        )),
    };
    why.or_else(|| gap(recovery, &survey))
        .or_else(|| no_redo(cluster, recovery))
        .or_else(|| ends_early(cluster, recovery))
}

fn gap(recovery: &Recovery, survey: &WalSurvey) -> Option<String> {
    let first = *survey.missing.first()?;
    let name = recovery.shape.segment_name(recovery.start.timeline, first);
    Some(format!(
        "{} between the redo point {} and the checkpoint {} not there, the first is {name}",
        plural(survey.missing.len(), "segment"),
        recovery.start.redo,
        verb_of(survey.missing.len(), "are")
    ))
}

/// The record at the redo point is read first.
fn no_redo(cluster: &Cluster, recovery: &Recovery) -> Option<String> {
    let redo = recovery.start.redo;
    if redo >= recovery.start.checkpoint {
        return None;
    }
    let pages = recovery.pages(cluster.source().as_ref());
    let mut reader = WalReader::new(pages, recovery.shape, redo);
    let end = reader.read().err()?;
    if !reader.pages().troubles.is_empty() {
        return None;
    }
    Some(format!(
        "no record stands at the redo point {redo}: {}",
        end.why
    ))
}

/// A base backup without the end of its WAL, whether its label is still there or was read already.
fn ends_early(cluster: &Cluster, recovery: &Recovery) -> Option<String> {
    if recovery.start.kind != StartKind::Backup && !awaits_end_of_backup(cluster) {
        return None;
    }
    let replay = cluster.replay()?;
    if replay.is_complete() || !replay.troubles.is_empty() {
        return None;
    }
    Some(format!(
        "WAL ends at {} before the end of the backup",
        replay.end.record
    ))
}

/// `backupEndRequired`: a server that began with a label has to see the end of the backup.
fn awaits_end_of_backup(cluster: &Cluster) -> bool {
    let is_begun = cluster
        .control
        .trusted()
        .is_some_and(|control| control.backup_start != Lsn(0));
    let byte = control_bytes(cluster)
        .get(places::BACKUP_END_REQUIRED)
        .copied();
    is_begun && byte == Some(1)
}

/// WAL may come from elsewhere: an archive or another server.
fn is_fed(cluster: &Cluster) -> bool {
    let source = cluster.source().as_ref();
    let signals = ["standby.signal", "recovery.signal"];
    let is_signalled = signals
        .iter()
        .any(|path| !Presence::of_file(source, path).is_missing());
    let settings = ["restore_command", "primary_conninfo"];
    let is_set = settings
        .iter()
        .any(|name| cluster.setting(name).is_some_and(|value| !value.is_empty()));
    is_signalled && is_set
}

/// What is done about a control file or WAL with which no server starts.
pub(super) fn found(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Found> {
    if let Some(found) = backup_label::lost(cluster) {
        return Ok(found);
    }
    let has_control = cluster.control.trusted().is_some();
    if !has_control
        && let Some(other) = cluster.major_of_wal()
        && other != cluster.layout.major
    {
        return Ok(of_two_majors(cluster, other));
    }
    let Some(recovery) = cluster.recovery() else {
        let why = "neither the control file nor WAL says where recovery begins";
        return reset_wal::found(cluster, why, options);
    };
    let why = why_not(cluster, recovery);
    match (has_control, why) {
        (true, None) => Ok(Vec::from_iter(backup_label::damaged(cluster)).into()),
        (true, Some(why)) if is_fed(cluster) => without_feed(cluster, &why, options),
        (true, Some(why)) => match backup_label::left(cluster, recovery, &why) {
            Some(draft) => Ok(vec![draft].into()),
            None => reset_wal::found(cluster, &why, options),
        },
        (false, None) => Ok(vec![control_file::draft(cluster, options)?].into()),
        (false, Some(why)) => reset_wal::found(cluster, &why, options),
    }
}

/// Neither is made fit for the other: a server of one major on catalogs of another destroys them.
fn of_two_majors(cluster: &Cluster, other: u16) -> Found {
    let mut found = Found::default();
    let why = format!(
        "PG_VERSION says {}, and WAL is of PostgreSQL {other}: one of them is from another cluster, and no control file is there to decide which. Bring back {CONTROL_FILE} from a backup, or the right PG_VERSION everywhere",
        cluster.layout.major
    );
    found.leave_open(CONTROL_FILE, Stops::Start, why);
    found
}

/// A server that knows where to get WAL needs no cure where that works: the reset is for when it
/// does not.
fn without_feed(cluster: &Cluster, why: &str, options: &StartOptions<'_>) -> Result<Found> {
    let mut found = reset_wal::found(cluster, why, options)?;
    for draft in &mut found.drafts {
        draft.safety = Safety::Lossy;
        draft.warnings.insert(0, FEED_FIRST.into());
    }
    Ok(found)
}

const FEED_FIRST: &str = "restore_command or primary_conninfo says where the server gets WAL from: where that works it starts by itself and loses nothing. Else look for the WAL in an archive first, with --wal DIR. Only then give it up: the server is no standby afterwards, and cannot follow its primary";

/// The recovery that would be without a label.
pub(super) fn without_label(cluster: &Cluster) -> Option<Recovery> {
    let control = cluster.control.trusted()?;
    let source = cluster.source().as_ref();
    Recovery::plan(source, cluster.layout, control, LabelState::None)
}

/// The checkpoint record's own data, byte by byte.
pub(super) fn checkpoint_bytes(cluster: &Cluster, recovery: &Recovery, at: Lsn) -> Option<Vec<u8>> {
    let pages = recovery.pages(cluster.source().as_ref());
    let mut reader = WalReader::new(pages, recovery.shape, at);
    let record = reader.read().ok()?;
    (record.lsn == at).then(|| record.main.to_vec())
}
