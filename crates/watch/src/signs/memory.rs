//! Connections, the oldest transaction, and the memory of backends (`pg_stat_activity`,
//! `/proc/PID/smaps_rollup`).

use pgclinic_model::document::{SignState, SignUnit, SignValue};

use super::failed_writes::TRANSACTIONS;
use super::{of, whole};
use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &CONNECTIONS,
    &LIMIT,
    &STATES,
    &OLDEST_TRANSACTION,
    &OLDEST_SNAPSHOT,
    &PREPARED,
    &MEMORY,
];

/// Backends whose memory is read; the kernel walks all page tables of each.
const BACKENDS_MAX: usize = 8;
/// Of the connections that are there, the part from which the rest is scarce.
const SCARCE: f64 = 0.9;
/// A transaction that is open for so long holds vacuum back in earnest.
const LONG_S: f64 = 3600.0;

static BY_STATE: Probe = Probe {
    name: "connection states",
    labels: &["state"],
    columns: &["connections"],
    needs: &[Need::AllStatistics, Need::Activities],
    sql: |_| {
        "SELECT coalesce(state, 'none'), count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
         GROUP BY 1 ORDER BY 1"
            .to_owned()
    },
    ..Probe::PLAIN
};

static OLDEST: Probe = Probe {
    name: "oldest transaction",
    columns: &["seconds", "snapshot age"],
    needs: &[Need::AllStatistics, Need::Activities],
    sql: |_| {
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)) FILTER (WHERE backend_type = 'client backend'), 0), \
         coalesce(greatest(max(age(backend_xmin)), max(age(backend_xid))), 0) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            .to_owned()
    },
    ..Probe::PLAIN
};

static PREPARED_TRANSACTIONS: Probe = Probe {
    name: "prepared transactions",
    columns: &["transactions"],
    sql: |_| "SELECT count(*) FROM pg_prepared_xacts".to_owned(),
    ..Probe::PLAIN
};

static BACKENDS: Probe = Probe {
    name: "backends",
    columns: &["pid"],
    needs: &[Need::Local, Need::AllStatistics],
    sql: |_| {
        format!(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
             ORDER BY backend_start, pid LIMIT {BACKENDS_MAX}"
        )
    },
    every_s: 30,
    cost: "A statement every 30 s, and a walk of the kernel over the page tables of eight backends.",
    ..Probe::PLAIN
};

const OF_MEMORY: Sign = Sign {
    family: Family::Memory,
    ..Sign::PLAIN
};

const CONNECTIONS: Sign = Sign {
    name: "connections",
    metric: "pgclinic_connections",
    summary: "connections",
    source: Source::Column(&TRANSACTIONS, "connections"),
    assess: Some(connections),
    normal: "Some times the number of processors.",
    meaning: "Each is a process with memory of its own; beyond the limit nobody is let in.",
    settled_by: "pgclinic lab run connection-memory and lock-contention.",
    alerts: &[Alert {
        name: "PgclinicConnectionsScarce",
        expression: "sum by (server) (pgclinic_connections) > on (server) 0.9 * pgclinic_connections_limit",
        hold: "5m",
        keep: "10m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: nine of ten connections are in use",
    }],
    ..OF_MEMORY
};

const LIMIT: Sign = Sign {
    name: "connections-limit",
    metric: "pgclinic_connections_limit",
    summary: "connections that users may have",
    source: Source::Computed(&[], limit),
    normal: "As max_connections says, without those that are reserved.",
    meaning: "What connections are compared with.",
    settled_by: "The settings of the server.",
    ..OF_MEMORY
};

const STATES: Sign = Sign {
    name: "connection-states",
    metric: "pgclinic_connection_states",
    summary: "connections by what they do",
    source: Source::Column(&BY_STATE, "connections"),
    normal: "Most of them idle, as many active as there are processors.",
    meaning: "Idle in transaction: an application keeps transactions open while it does something else; they hold locks and vacuum back.",
    settled_by: "pg_stat_activity names them; idle_in_transaction_session_timeout ends them.",
    ..OF_MEMORY
};

const OLDEST_TRANSACTION: Sign = Sign {
    name: "oldest-transaction",
    metric: "pgclinic_oldest_transaction_seconds",
    summary: "age of the oldest open transaction",
    unit: SignUnit::Seconds,
    source: Source::Column(&OLDEST, "seconds"),
    gather: Gather::Max,
    assess: Some(oldest),
    normal: "Below some minutes; a dump or a report takes as long as it takes.",
    meaning: "No row that died since can be removed by vacuum, in any table of the database.",
    settled_by: "pg_stat_activity ordered by xact_start.",
    alerts: &[Alert {
        name: "PgclinicTransactionOpen",
        expression: "pgclinic_oldest_transaction_seconds > 3600",
        hold: "15m",
        keep: "5m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: a transaction is open since {{ $value | humanizeDuration }}",
    }],
    ..OF_MEMORY
};

const OLDEST_SNAPSHOT: Sign = Sign {
    name: "oldest-snapshot",
    metric: "pgclinic_oldest_snapshot_age",
    summary: "transaction ids used since the oldest snapshot that a process holds",
    source: Source::Column(&OLDEST, "snapshot age"),
    gather: Gather::Max,
    normal: "Small beside autovacuum_freeze_max_age.",
    meaning: "What vacuum cannot remove, and ids that it cannot freeze.",
    settled_by: "pg_stat_activity ordered by age(backend_xmin); pg_replication_slots.",
    ..OF_MEMORY
};

const PREPARED: Sign = Sign {
    name: "prepared-transactions",
    metric: "pgclinic_prepared_transactions",
    summary: "transactions prepared and not ended",
    source: Source::Column(&PREPARED_TRANSACTIONS, "transactions"),
    normal: "0 without a transaction manager.",
    meaning: "One that was forgotten holds its locks and vacuum back, also across restarts.",
    settled_by: "pg_prepared_xacts; ROLLBACK PREPARED.",
    ..OF_MEMORY
};

const MEMORY: Sign = Sign {
    name: "backend-memory",
    metric: "pgclinic_backend_memory_bytes",
    summary: "memory of the eight oldest sessions: their own, and with their part of what is shared",
    unit: SignUnit::Bytes,
    source: Source::Computed(&[&BACKENDS], memory),
    labels: &["kind", "which"],
    gather: Gather::Max,
    normal: "2 to 20 MiB of their own each.",
    meaning: "Memory that only grows is a cache of plans, catalogs or JIT code; without huge pages the page tables come on top.",
    settled_by: "pgclinic lab run connection-memory and jit-memory.",
    ..OF_MEMORY
};

fn limit(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let of = |name| sample.facts.number(name);
    let all = of("max_connections").ok_or("max_connections is not shown to this role")?;
    let reserved = of("superuser_reserved_connections").unwrap_or(0.0)
        + of("reserved_connections").unwrap_or(0.0);
    Ok(vec![whole(all - reserved)])
}

fn connections(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let limit = limit(sample).ok()?.first()?.value;
    let all: f64 = values.iter().map(|own| own.value).sum();
    let words = format!("{all:.0} of {limit:.0} are in use");
    (all > SCARCE * limit).then_some((SignState::Warning, words))
}

fn oldest(_moment: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let seconds = values.first()?.value;
    let words = format!("a transaction is open for {:.1} h", seconds / 3600.0);
    (seconds > LONG_S).then_some((SignState::Warning, words))
}

fn memory(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let table = sample.table(&BACKENDS)?;
    let machine = sample
        .machine
        .ok_or("the kernel of this machine cannot be asked")?;
    if table.rows.is_empty() {
        return Err("no other session is there".to_owned());
    }
    let pids = table
        .rows
        .iter()
        .filter_map(|row| row.cells.first().copied().flatten());
    // A backend may end between the two looks.
    let pids = pids.filter_map(|pid| format!("{pid:.0}").parse().ok());
    let found: Vec<_> = pids
        .filter_map(|pid| (machine.memory_of)(pid).ok())
        .collect();
    if found.is_empty() {
        return Err("the kernel does not show the memory of backends to this user".to_owned());
    }
    let mut values = Vec::new();
    for (kind, bytes) in [
        (
            "private",
            found.iter().map(|own| own.private).collect::<Vec<_>>(),
        ),
        (
            "proportional",
            found.iter().map(|own| own.proportional).collect(),
        ),
    ] {
        let sum: u64 = bytes.iter().sum();
        let most = bytes.iter().copied().max().unwrap_or(0);
        for (which, value) in [
            ("mean", sum as f64 / bytes.len() as f64),
            ("most", most as f64),
        ] {
            let mut own = of("kind", kind, value);
            own.labels = own.labels.with("which", which);
            values.push(own);
        }
    }
    Ok(values)
}
