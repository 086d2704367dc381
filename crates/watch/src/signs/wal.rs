//! Write-ahead log and checkpoints: `pg_stat_wal` (since 14; what belongs to I/O moved to
//! `pg_stat_io` in 18), `pg_stat_bgwriter` up to 16, `pg_stat_checkpointer` since 17.

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use crate::assess::Sample;
use crate::facts::ServerFacts;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &WAL_BYTES,
    &RECORDS,
    &FULL_PAGE_IMAGES,
    &BUFFERS_FULL,
    &WAL_SYNCS,
    &TIMED,
    &REQUESTED,
    &WRITE_TIME,
    &SYNC_TIME,
    &BUFFERS,
    &ARCHIVE_FAILURES,
];

static POSITION: Probe = Probe {
    name: "wal position",
    columns: &["bytes"],
    sql: |_| {
        "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')"
            .to_owned()
    },
    cost: "Two numbers from shared memory.",
    ..Probe::PLAIN
};

static WAL: Probe = Probe {
    name: "wal",
    columns: &["records", "full page images", "buffers full"],
    has_reset: true,
    needs: &[Need::Since(14, "pg_stat_wal"), Need::Primary],
    sql: |_| {
        "SELECT wal_records, wal_fpi, wal_buffers_full, stats_reset FROM pg_stat_wal".to_owned()
    },
    ..Probe::PLAIN
};

static SYNCS: Probe = Probe {
    name: "wal syncs",
    columns: &["syncs"],
    has_reset: true,
    needs: &[Need::Since(14, "pg_stat_wal"), Need::Primary],
    sql: |facts| {
        if facts.major >= 18 {
            "SELECT sum(fsyncs), max(stats_reset) FROM pg_stat_io WHERE object = 'wal'".to_owned()
        } else {
            "SELECT wal_sync, stats_reset FROM pg_stat_wal".to_owned()
        }
    },
    ..Probe::PLAIN
};

static CHECKPOINTS: Probe = Probe {
    name: "checkpoints",
    columns: &[
        "timed",
        "requested",
        "write seconds",
        "sync seconds",
        "buffers",
    ],
    has_reset: true,
    sql: checkpoints,
    ..Probe::PLAIN
};

/// Since 17 a standby's restartpoints are counted apart.
fn checkpoints(facts: &ServerFacts) -> String {
    let (timed, requested) = match (facts.major >= 17, facts.is_standby) {
        (true, true) => ("restartpoints_timed", "restartpoints_req"),
        (true, false) => ("num_timed", "num_requested"),
        (false, _) => ("checkpoints_timed", "checkpoints_req"),
    };
    if facts.major >= 17 {
        format!(
            "SELECT {timed}, {requested}, write_time / 1000, sync_time / 1000, buffers_written, stats_reset FROM pg_stat_checkpointer"
        )
    } else {
        format!(
            "SELECT {timed}, {requested}, checkpoint_write_time / 1000, checkpoint_sync_time / 1000, buffers_checkpoint, stats_reset \
             FROM pg_stat_bgwriter"
        )
    }
}

static ARCHIVER: Probe = Probe {
    name: "archiver",
    columns: &["failed"],
    has_reset: true,
    needs: &[Need::Archiving],
    sql: |_| "SELECT failed_count, stats_reset FROM pg_stat_archiver".to_owned(),
    ..Probe::PLAIN
};

const OF_WAL: Sign = Sign {
    family: Family::Wal,
    kind: SignKind::Counter,
    ..Sign::PLAIN
};

const WAL_BYTES: Sign = Sign {
    name: "wal-bytes",
    metric: "pgclinic_wal_bytes_total",
    summary: "bytes of WAL written; on a standby, replayed",
    unit: SignUnit::Bytes,
    source: Source::Column(&POSITION, "bytes"),
    normal: "The load; it is what archives, standbys and backups have to carry.",
    meaning: "More WAL than data changes: full-page images after checkpoints, failed inserts, or indexes on random keys.",
    settled_by: "pgclinic lab run uuid-keys and duplicate-inserts have the bytes a row.",
    ..OF_WAL
};

const RECORDS: Sign = Sign {
    name: "wal-records",
    metric: "pgclinic_wal_records_total",
    summary: "records of WAL",
    source: Source::Column(&WAL, "records"),
    normal: "The load.",
    meaning: "What full-page images are compared with.",
    settled_by: "pg_waldump --stats=record on a segment.",
    ..OF_WAL
};

const FULL_PAGE_IMAGES: Sign = Sign {
    name: "wal-full-page-images",
    metric: "pgclinic_wal_full_page_images_total",
    summary: "whole pages in WAL",
    source: Source::Column(&WAL, "full page images"),
    normal: "Many right after a checkpoint, few before the next.",
    meaning: "Checkpoints follow each other too soon, or keys are random, so that each row touches another page.",
    settled_by: "checkpoints-requested; pgclinic lab run uuid-keys; wal_compression.",
    ..OF_WAL
};

const BUFFERS_FULL: Sign = Sign {
    name: "wal-buffers-full",
    metric: "pgclinic_wal_buffers_full_total",
    summary: "times that WAL was written since wal_buffers was full",
    source: Source::Column(&WAL, "buffers full"),
    normal: "Rare.",
    meaning: "Large transactions fill wal_buffers before the WAL writer comes.",
    settled_by: "wal_buffers = 64MB and the same load.",
    ..OF_WAL
};

const WAL_SYNCS: Sign = Sign {
    name: "wal-syncs",
    metric: "pgclinic_wal_syncs_total",
    summary: "times that WAL was made durable",
    source: Source::Column(&SYNCS, "syncs"),
    normal: "At most one for each commit; fewer where commits share one.",
    meaning: "The disk's limit of syncs a second is the server's limit of commits.",
    settled_by: "pg_test_fsync; pgclinic lab run filesystem.",
    ..OF_WAL
};

const TIMED: Sign = Sign {
    name: "checkpoints-timed",
    metric: "pgclinic_checkpoints_timed_total",
    summary: "checkpoints that checkpoint_timeout began; restartpoints of a standby",
    source: Source::Column(&CHECKPOINTS, "timed"),
    normal: "One each checkpoint_timeout.",
    meaning: "This is how checkpoints should begin.",
    settled_by: "log_checkpoints.",
    ..OF_WAL
};

const REQUESTED: Sign = Sign {
    name: "checkpoints-requested",
    metric: "pgclinic_checkpoints_requested_total",
    summary: "checkpoints that WAL, a backup or somebody asked for",
    source: Source::Column(&CHECKPOINTS, "requested"),
    assess: Some(requested),
    normal: "Far fewer than timed ones.",
    meaning: "max_wal_size is too small for the load: each checkpoint brings its full-page images.",
    settled_by: "max_wal_size, and wal-full-page-images before and after.",
    alerts: &[Alert {
        name: "PgclinicCheckpointsRequested",
        expression: "increase(pgclinic_checkpoints_requested_total[1h]) > 6",
        hold: "1h",
        keep: "30m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: {{ $value | humanize }} checkpoints an hour are forced by WAL",
    }],
    ..OF_WAL
};

const WRITE_TIME: Sign = Sign {
    name: "checkpoint-write-time",
    metric: "pgclinic_checkpoint_write_seconds_total",
    summary: "seconds in which checkpoints wrote, spread on purpose",
    unit: SignUnit::Seconds,
    source: Source::Column(&CHECKPOINTS, "write seconds"),
    normal: "Up to checkpoint_completion_target of the time.",
    meaning: "It is a pace and no wait.",
    settled_by: "log_checkpoints.",
    ..OF_WAL
};

const SYNC_TIME: Sign = Sign {
    name: "checkpoint-sync-time",
    metric: "pgclinic_checkpoint_sync_seconds_total",
    summary: "seconds in which checkpoints waited for the disk",
    unit: SignUnit::Seconds,
    source: Source::Column(&CHECKPOINTS, "sync seconds"),
    normal: "Below a second for each checkpoint.",
    meaning: "The kernel kept writes back and the disk takes all at once: everybody's I/O stalls meanwhile.",
    settled_by: "vm.dirty_background_bytes; pgclinic lab run filesystem.",
    ..OF_WAL
};

const BUFFERS: Sign = Sign {
    name: "checkpoint-buffers",
    metric: "pgclinic_checkpoint_buffers_total",
    summary: "buffers that checkpoints wrote",
    source: Source::Column(&CHECKPOINTS, "buffers"),
    normal: "Most of all writes.",
    meaning: "What is left of writing belongs to sessions and the background writer.",
    settled_by: "io-writes by kind of process.",
    ..OF_WAL
};

const ARCHIVE_FAILURES: Sign = Sign {
    name: "archive-failures",
    metric: "pgclinic_archive_failures_total",
    summary: "segments of WAL that could not be archived",
    source: Source::Column(&ARCHIVER, "failed"),
    assess: Some(archive_failures),
    normal: "0.",
    meaning: "No backup can be restored beyond the last archived segment, and pg_wal fills until the server stops.",
    settled_by: "The server's log has the words of the archive command.",
    alerts: &[Alert {
        name: "PgclinicArchiveFailures",
        expression: "increase(pgclinic_archive_failures_total[15m]) > 0",
        hold: "15m",
        keep: "30m",
        urgency: Urgency::Critical,
        summary: "{{ $labels.server }}: WAL cannot be archived",
    }],
    ..OF_WAL
};

/// Checkpoints that WAL forces, several a minute for as long as it was watched.
fn requested(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let (growth, seconds) = sample
        .growth_since_first(&CHECKPOINTS, &[], "requested")
        .ok()?;
    let is_often = growth >= 3.0 && growth / seconds * 60.0 > 1.0;
    let words = format!("{growth:.0} checkpoints were requested in {seconds:.0} s of watching");
    is_often.then_some((SignState::Warning, words))
}

fn archive_failures(sample: &Sample<'_>, _values: &[SignValue]) -> Option<(SignState, String)> {
    let (growth, _) = sample.growth_since_first(&ARCHIVER, &[], "failed").ok()?;
    let words = format!("{growth:.0} while watching");
    (growth > 0.0).then_some((SignState::Critical, words))
}
