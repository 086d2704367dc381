//! A control file written again from the last checkpoint in WAL: recovery begins there, as it would
//! have.

use pgclinic_cluster::wal::StartKind;
use pgclinic_cluster::{Cluster, ControlState};
use pgclinic_format::build::put_bytes;
use pgclinic_format::control_file::{FILE_BYTES, State, places};
use pgclinic_format::{ControlFile, Lsn};
use pgclinic_model::document::FieldChange;
use pgclinic_model::plan::Safety;
use pgclinic_model::{plural, verb_of};

use super::ground::Ground;
use super::new_control::keeps_time_stamps;
use super::page_counters::{PageCounters, count_pages};
use super::reset_wal::nonce_at;
use super::{CONTROL_FILE, Draft, StartOptions, control_bytes, recovery, write};
use crate::error::{Error, Result};

pub(super) const NAME: &str = "control-file-from-wal";

const SUMMARY: &str =
    "the control file is written from the last checkpoint in pg_wal, from which recovery runs";

/// Recovery runs with the checkpoint that WAL has.
pub(super) fn draft(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Draft> {
    let cannot = |why: &str| Error::Cure {
        place: CONTROL_FILE.into(),
        why: why.into(),
    };
    let found = cluster.control_from_wal();
    let found = found.ok_or_else(|| cannot("no checkpoint record is in pg_wal"))?;
    let plan = cluster.recovery();
    let plan = plan.ok_or_else(|| cannot("nothing says where recovery begins"))?;
    let record = recovery::checkpoint_bytes(cluster, plan, found.checkpoint_lsn);
    let record = record.ok_or_else(|| cannot("the checkpoint record cannot be read"))?;
    let ground = Ground::read(cluster)?;
    let pages = count_pages(cluster, &ground.bounds(), options.threads, options.progress);
    let control = completed(cluster, found, plan.start.kind, &pages);
    let base = base(cluster, &control, &pages);
    let bytes = control.to_bytes(&record, &base);
    let doubts = doubts(cluster, &control, &pages);
    let safety = if doubts.is_empty() {
        Safety::Exact
    } else {
        Safety::Lossy
    };
    let draft = Draft::new(NAME, safety, CONTROL_FILE, SUMMARY)
        .because(format!(
            "the last checkpoint record stands at {}, and recovery reads from its redo point {} on",
            control.checkpoint_lsn, control.checkpoint.redo
        ))
        .because(format!(
            "system identifier {} and the sizes of WAL: the heads of its segments",
            control.system_identifier
        ))
        .because(format!(
            "data checksums {}: {} of {} {} a right one",
            if control.checksums() { "on" } else { "off" },
            pages.checksums_right,
            plural(pages.pages, "page"),
            verb_of(pages.checksums_right, "carry")
        ))
        .because(format!(
            "catalog version {} and control version {}: those of PostgreSQL {}",
            control.catalog_version_no, control.pg_control_version, cluster.layout.major
        ))
        .change(
            "written from the fields below",
            write(cluster, CONTROL_FILE, bytes, FILE_BYTES as u64),
        );
    let draft = match &cluster.control {
        ControlState::Older { control, .. } => draft.because(format!(
            "the control file is older: its checkpoint is at {}, and pages carry LSNs of records after it. Its settings stay",
            control.checkpoint_lsn
        )),
        _ => draft,
    };
    let draft = doubts.into_iter().fold(draft, Draft::warn);
    Ok(Draft {
        fields: fields(&control),
        ..draft
    })
}

/// Why recovery from there may end before what the pages have, or what is written may not be what
/// was.
fn doubts(cluster: &Cluster, control: &ControlFile, pages: &PageCounters) -> Vec<String> {
    let mut doubts = Vec::new();
    let end = cluster
        .replay()
        .map_or(control.checkpoint_lsn, |replay| replay.end.record);
    if let Some(last) = pages.numbers().lsn.filter(|last| last.value > end) {
        doubts.push(format!(
            "WAL is missing: a page was changed at {}, and pg_wal ends at {end}",
            last.value
        ));
    }
    let far = pages.far();
    if let Some(at) = &far.doubted {
        doubts.push(format!(
            "{} {} an LSN more than 1 TiB after all WAL that is known, the first at {at}: this is damage, or WAL is missing",
            plural(far.doubted_pages, "page"),
            verb_of(far.doubted_pages, "carry")
        ));
    }
    if pages.checksums_wrong > 0 {
        doubts.push(format!(
            "{} {} a checksum that is wrong: whether data checksums were on is a guess",
            plural(pages.checksums_wrong, "page"),
            verb_of(pages.checksums_wrong, "carry")
        ));
    }
    if let Some(first) = pages.not_read.first() {
        doubts.push(format!("{} was not read: {}", first.what, first.why));
    }
    doubts
}

fn completed(
    cluster: &Cluster,
    found: &ControlFile,
    kind: StartKind,
    pages: &PageCounters,
) -> ControlFile {
    let layout = cluster.layout;
    let mut control = ControlFile {
        pg_control_version: layout.control_version,
        catalog_version_no: layout.catalog_version,
        data_checksum_version: u32::from(pages.has_checksums()),
        default_char_signedness: (layout.major >= 18).then_some(true),
        track_commit_timestamp: found.track_commit_timestamp || keeps_time_stamps(cluster),
        ..found.clone()
    };
    if let ControlState::Older { control: older, .. } = &cluster.control {
        control.max_connections = older.max_connections;
        control.max_worker_processes = older.max_worker_processes;
        control.max_prepared_transactions = older.max_prepared_transactions;
        control.wal_level = older.wal_level;
        control.track_commit_timestamp |= older.track_commit_timestamp;
        control.default_char_signedness = older.default_char_signedness;
    }
    if control.min_recovery_timeline <= control.checkpoint.timeline {
        control.min_recovery_timeline = 0;
    }
    // A standby's pages may be as new as the last record that it wrote to its own WAL.
    if kind == StartKind::Archive
        && let Some(replay) = cluster.replay()
    {
        control.min_recovery_point = replay.end.record;
        control.min_recovery_timeline = replay.timeline;
    }
    control
}

/// What no record tells: the settings of a cluster as initdb leaves them, until the server notes
/// its own.
fn base(cluster: &Cluster, control: &ControlFile, pages: &PageCounters) -> Vec<u8> {
    let is_older = matches!(cluster.control, ControlState::Older { .. });
    let mut base = if is_older {
        control_bytes(cluster)
    } else {
        Vec::new()
    };
    base.resize(FILE_BYTES, 0);
    let mut put = |at: usize, value: &[u8]| put_bytes(&mut base, at, value);
    let unlogged = pages.numbers().unlogged_lsn;
    let unlogged = unlogged.map_or(Lsn(1000), |own| own.value).0.max(1000);
    put(
        places::UNLOGGED_LSN,
        &unlogged.saturating_add(1).to_le_bytes(),
    );
    if is_older {
        return base;
    }
    // replica
    put(places::WAL_LEVEL, &1u32.to_le_bytes());
    put(places::MAX_WAL_SENDERS, &10u32.to_le_bytes());
    put(places::MAX_LOCKS_PER_XACT, &64u32.to_le_bytes());
    let nonce = blake3::hash(format!("{control:?}").as_bytes());
    put(nonce_at(cluster), nonce.as_bytes());
    base
}

fn fields(control: &ControlFile) -> Vec<FieldChange> {
    let checkpoint = &control.checkpoint;
    let state = match control.state {
        State::ShutDown => "shut down",
        State::InArchiveRecovery => "in archive recovery",
        _ => "in production",
    };
    let all = [
        (
            "Database system identifier",
            control.system_identifier.to_string(),
        ),
        ("Database cluster state", state.to_owned()),
        (
            "Latest checkpoint location",
            control.checkpoint_lsn.to_string(),
        ),
        (
            "Latest checkpoint's REDO location",
            checkpoint.redo.to_string(),
        ),
        (
            "Latest checkpoint's TimeLineID",
            checkpoint.timeline.to_string(),
        ),
        (
            "Latest checkpoint's NextXID",
            format!(
                "{}:{}",
                checkpoint.next_full_xid >> 32,
                checkpoint.next_xid().0
            ),
        ),
        (
            "Latest checkpoint's NextOID",
            checkpoint.next_oid.to_string(),
        ),
        (
            "Data page checksum version",
            control.data_checksum_version.to_string(),
        ),
    ];
    all.into_iter()
        .map(|(name, after)| FieldChange {
            of: "control file".into(),
            name: name.into(),
            before: "unknown".into(),
            after,
        })
        .collect()
}
