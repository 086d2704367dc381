//! Asynchronous I/O (`pg_aios`, since 18; `src/backend/storage/aio/aio_funcs.c`) and sessions that
//! wait for I/O.
//!
//! Requests live for microseconds to milliseconds, so that each sample is a burst of looks: figures
//! are the mean of a burst, and the most of it.

use pgclinic_model::document::{SignState, SignUnit, SignValue};

use super::{named, of};
use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &IO_METHOD,
    &WORKERS,
    &IN_FLIGHT,
    &IN_FLIGHT_MOST,
    &IN_FLIGHT_BYTES,
    &REQUESTS,
    &ISSUERS,
    &WAITING,
];

const PG_AIOS: Need = Need::Since(18, "pg_aios");
/// Looks of a burst.
const LOOKS: u32 = 5;

static TOTALS: Probe = Probe {
    name: "requests in flight",
    columns: &["requests", "bytes"],
    needs: &[PG_AIOS, Need::AllStatistics],
    sql: |_| {
        "SELECT count(*), coalesce(sum(length), 0) FROM pg_aios WHERE state = 'SUBMITTED'"
            .to_owned()
    },
    looks: LOOKS,
    cost: "Five statements 5 ms apart; each takes a snapshot of all handles without locks.",
    ..Probe::PLAIN
};

static BY_KIND: Probe = Probe {
    name: "requests by kind",
    labels: &["state", "operation", "target", "size"],
    columns: &["requests"],
    needs: &[PG_AIOS, Need::AllStatistics],
    sql: |_| {
        "SELECT lower(state), coalesce(operation, 'none'), coalesce(target, 'none'), CASE WHEN length IS NULL THEN 'none' \
         WHEN length <= 8192 THEN 'to 8 kB' WHEN length <= 32768 THEN 'to 32 kB' WHEN length <= 131072 THEN 'to 128 kB' \
         WHEN length <= 524288 THEN 'to 512 kB' ELSE 'above' END, count(*) FROM pg_aios GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
            .to_owned()
    },
    looks: LOOKS,
    cost: "Five statements 5 ms apart; each takes a snapshot of all handles without locks.",
    ..Probe::PLAIN
};

static BY_ISSUER: Probe = Probe {
    name: "requests by issuer",
    labels: &["backend_type"],
    columns: &["requests"],
    needs: &[PG_AIOS, Need::AllStatistics],
    sql: |_| {
        "SELECT coalesce(a.backend_type, 'ended'), count(*) FROM pg_aios r LEFT JOIN pg_stat_activity a USING (pid) \
         GROUP BY 1 ORDER BY 1"
            .to_owned()
    },
    looks: LOOKS,
    cost: "Five statements 5 ms apart, joined with pg_stat_activity.",
    ..Probe::PLAIN
};

static IO_WORKERS: Probe = Probe {
    name: "io workers",
    columns: &["busy", "idle"],
    needs: &[
        Need::Since(18, "I/O workers"),
        Need::IoWorkers,
        Need::AllStatistics,
    ],
    sql: |_| {
        "SELECT count(*) FILTER (WHERE wait_event IS DISTINCT FROM 'IoWorkerMain'), \
         count(*) FILTER (WHERE wait_event = 'IoWorkerMain') FROM pg_stat_activity WHERE backend_type = 'io worker'"
            .to_owned()
    },
    looks: LOOKS,
    cost: "Five statements 5 ms apart on pg_stat_activity.",
    ..Probe::PLAIN
};

static WAITS: Probe = Probe {
    name: "waits for io",
    labels: &["wait_event"],
    columns: &["sessions"],
    needs: &[Need::AllStatistics],
    sql: |_| {
        "SELECT wait_event, count(*) FROM pg_stat_activity WHERE wait_event_type = 'IO' AND pid <> pg_backend_pid() \
         GROUP BY 1 ORDER BY 1"
            .to_owned()
    },
    looks: LOOKS,
    cost: "Five statements 5 ms apart on pg_stat_activity.",
    ..Probe::PLAIN
};

const IO_METHOD: Sign = Sign {
    name: "io-method",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_method",
    summary: "how the server does asynchronous I/O; 1 at the method in use",
    source: Source::Computed(&[], method),
    labels: &["method"],
    needs: &[Need::Since(18, "io_method")],
    normal: "worker or io_uring.",
    meaning: "With sync every read waits for its own end, as up to 17.",
    settled_by: "pgclinic lab run async-io.",
    ..Sign::PLAIN
};

const WORKERS: Sign = Sign {
    name: "io-workers",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_workers",
    summary: "I/O workers by whether they are busy",
    source: Source::Computed(&[&IO_WORKERS], workers),
    labels: &["state"],
    assess: Some(all_busy),
    normal: "Some of them idle.",
    meaning: "When all are busy, requests queue in the server while the disk may be idle: io_workers, 3 by default, is too small.",
    settled_by: "pgclinic lab run async-io; a quarter to a half of the processor's threads is advised.",
    alerts: &[Alert {
        name: "PgclinicIoWorkersBusy",
        expression: "avg_over_time(pgclinic_io_workers{state=\"idle\"}[15m]) < 0.2 and on (server) rate(pgclinic_blocks_read_total[15m]) > 100",
        hold: "30m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: all I/O workers are busy",
    }],
    ..Sign::PLAIN
};

const IN_FLIGHT: Sign = Sign {
    name: "io-in-flight",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_in_flight",
    summary: "requests handed to kernel or worker and not done, on average of a burst",
    source: Source::Column(&TOTALS, "requests"),
    normal: "0 while all is found in memory; a cold scan has up to effective_io_concurrency.",
    meaning: "How much of the disk's parallelism the server uses: 1 while sessions wait for I/O means that nothing is read ahead.",
    settled_by: "pgclinic lab run async-io.",
    ..Sign::PLAIN
};

const IN_FLIGHT_MOST: Sign = Sign {
    name: "io-in-flight-most",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_in_flight_most",
    summary: "requests handed to kernel or worker and not done, at most of a burst",
    source: Source::Column(&TOTALS, "requests at most"),
    gather: Gather::Max,
    normal: "As for io-in-flight.",
    meaning: "Peaks that the mean hides.",
    settled_by: "pgclinic lab run async-io.",
    ..Sign::PLAIN
};

const IN_FLIGHT_BYTES: Sign = Sign {
    name: "io-in-flight-bytes",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_in_flight_bytes",
    summary: "bytes of the requests in flight",
    unit: SignUnit::Bytes,
    source: Source::Column(&TOTALS, "bytes"),
    normal: "Requests times up to io_combine_limit.",
    meaning: "Small requests in large numbers: neighbours are not combined, io_combine_limit is low or the access is random.",
    settled_by: "pgclinic lab run async-io with io_combine_limit as an axis.",
    ..Sign::PLAIN
};

const REQUESTS: Sign = Sign {
    name: "io-requests",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_requests",
    summary: "requests by state, operation, target and size, on average of a burst",
    source: Source::Column(&BY_KIND, "requests"),
    normal: "Most of them submitted.",
    meaning: "Many that are staged or defined wait in the server and not for the disk.",
    settled_by: "pgclinic lab run async-io.",
    ..Sign::PLAIN
};

const ISSUERS: Sign = Sign {
    name: "io-issuers",
    family: Family::AsynchronousIo,
    metric: "pgclinic_io_issuers",
    summary: "requests by the kind of process that issued them, on average of a burst",
    source: Source::Column(&BY_ISSUER, "requests"),
    normal: "Client backends, and autovacuum workers at times.",
    meaning: "Who fills the disk's queue: queries or maintenance.",
    settled_by: "blocks-read by backend type.",
    ..Sign::PLAIN
};

const WAITING: Sign = Sign {
    name: "sessions-waiting-for-io",
    family: Family::AsynchronousIo,
    metric: "pgclinic_sessions_waiting_for_io",
    summary: "processes that wait for I/O, on average of a burst",
    source: Source::Column(&WAITS, "sessions"),
    normal: "Fewer than the disk serves at once.",
    meaning: "DataFileRead: memory is too small for what is read. WALSync: commits wait for the disk. AioIoCompletion: waits for requests of its own.",
    settled_by: "pgclinic lab run async-io; read-time of blocks has the milliseconds.",
    ..Sign::PLAIN
};

fn method(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let method = sample
        .facts
        .shown("io_method")
        .ok_or("io_method is not shown to this role")?;
    Ok(vec![of("method", method, 1.0)])
}

fn workers(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let table = sample.table(&IO_WORKERS)?;
    let cell = |at| table.cell(&[], at).unwrap_or(0.0);
    Ok(vec![
        of("state", "busy", cell(0)),
        of("state", "idle", cell(1)),
    ])
}

fn all_busy(_moment: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let busy = values
        .iter()
        .find(|own| named(own, "state") == "busy")?
        .value;
    let idle = values
        .iter()
        .find(|own| named(own, "state") == "idle")?
        .value;
    let words = format!("all {busy:.0} I/O workers were busy in every look");
    (busy >= 1.0 && idle == 0.0).then_some((SignState::Ok, words))
}
