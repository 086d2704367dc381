//! Writes that come to nothing: rollbacks, deadlocks, and the dead rows that they leave behind
//! (`pg_stat_database`, `pg_stat_all_tables`).

use pgclinic_model::document::{SignKind, SignState, SignValue};

use super::{RESET_OF_DATABASE, named};
use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Gather, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &ROLLBACKS,
    &COMMITS,
    &DEADLOCKS,
    &CONFLICTS,
    &ROWS_INSERTED,
    &DEAD_ROWS,
    &DEAD_ROWS_OF_RELATIONS,
];

/// Tables with a value of their own.
const RELATIONS_MAX: usize = 10;
/// Rollbacks a second that are worth a word where most transactions fail.
const ROLLBACKS_MIN: f64 = 10.0;

pub(crate) static TRANSACTIONS: Probe = Probe {
    name: "transactions",
    labels: &["database"],
    columns: &[
        "rollbacks",
        "commits",
        "deadlocks",
        "conflicts",
        "blocks hit",
        "blocks read",
        "temporary files",
        "temporary bytes",
        "connections",
    ],
    has_reset: true,
    needs: &[Need::Counts],
    sql: |_| {
        "SELECT datname, xact_rollback, xact_commit, deadlocks, conflicts, blks_hit, blks_read, temp_files, temp_bytes, numbackends, \
         stats_reset FROM pg_stat_database WHERE datname IS NOT NULL ORDER BY 1"
            .to_owned()
    },
    ..Probe::PLAIN
};

pub(crate) static ROWS: Probe = Probe {
    name: "rows",
    labels: &["database"],
    columns: &["inserted", "dead"],
    has_reset: true,
    needs: &[Need::Counts],
    sql: |_| {
        format!(
            "SELECT current_database(), coalesce(sum(n_tup_ins), 0), coalesce(sum(n_dead_tup), 0), {RESET_OF_DATABASE} \
             FROM pg_stat_user_tables"
        )
    },
    every_s: 10,
    cost: "One row of pg_class and of the statistics for each table of the database, every 10 s.",
    ..Probe::PLAIN
};

static DEAD: Probe = Probe {
    name: "dead rows",
    labels: &["database", "relation"],
    columns: &["dead"],
    needs: &[Need::Counts],
    sql: |_| {
        format!(
            "SELECT current_database(), schemaname || '.' || relname, n_dead_tup FROM pg_stat_all_tables \
             WHERE n_dead_tup > 0 ORDER BY 3 DESC, 2 LIMIT {RELATIONS_MAX}"
        )
    },
    every_s: 60,
    cost: "One row of pg_class and of the statistics for each table of the database, once a minute.",
    ..Probe::PLAIN
};

const ROLLBACKS: Sign = Sign {
    name: "rollbacks",
    family: Family::FailedWrites,
    metric: "pgclinic_rollbacks_total",
    summary: "transactions rolled back",
    kind: SignKind::Counter,
    source: Source::Column(&TRANSACTIONS, "rollbacks"),
    assess: Some(rollbacks),
    normal: "A small part of the commits.",
    meaning: "Statements fail, such as inserts of keys that are there already. Each leaves a dead row, entries in indexes, WAL and a used transaction id.",
    settled_by: "pgclinic lab run duplicate-inserts compares the ways to avoid them; the server's log has the errors.",
    alerts: &[Alert {
        name: "PgclinicRollbacks",
        expression: "(rate(pgclinic_rollbacks_total[5m]) > 10) and (rate(pgclinic_rollbacks_total[5m]) > rate(pgclinic_commits_total[5m]))",
        hold: "15m",
        keep: "15m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: more transactions fail than succeed in database {{ $labels.database }}, {{ $value | humanize }} a second",
    }],
    ..Sign::PLAIN
};

const COMMITS: Sign = Sign {
    name: "commits",
    family: Family::FailedWrites,
    metric: "pgclinic_commits_total",
    summary: "transactions committed",
    kind: SignKind::Counter,
    source: Source::Column(&TRANSACTIONS, "commits"),
    normal: "The load.",
    meaning: "What rollbacks and used transaction ids are compared with.",
    settled_by: "The application.",
    ..Sign::PLAIN
};

const DEADLOCKS: Sign = Sign {
    name: "deadlocks",
    family: Family::FailedWrites,
    metric: "pgclinic_deadlocks_total",
    summary: "deadlocks",
    kind: SignKind::Counter,
    source: Source::Column(&TRANSACTIONS, "deadlocks"),
    normal: "0, or a few a day.",
    meaning: "Transactions take the same locks in different order; one of them is rolled back after deadlock_timeout.",
    settled_by: "The server's log has both statements.",
    ..Sign::PLAIN
};

const CONFLICTS: Sign = Sign {
    name: "recovery-conflicts",
    family: Family::FailedWrites,
    metric: "pgclinic_recovery_conflicts_total",
    summary: "queries of a standby canceled by recovery",
    kind: SignKind::Counter,
    source: Source::Column(&TRANSACTIONS, "conflicts"),
    normal: "0.",
    meaning: "WAL of the primary removes rows or takes locks that queries here still need.",
    settled_by: "pg_stat_database_conflicts says which kind.",
    ..Sign::PLAIN
};

const ROWS_INSERTED: Sign = Sign {
    name: "rows-inserted",
    family: Family::FailedWrites,
    metric: "pgclinic_rows_inserted_total",
    summary: "rows inserted into tables of users, failed ones too",
    kind: SignKind::Counter,
    source: Source::Column(&ROWS, "inserted"),
    normal: "The load.",
    meaning: "Rows of failed transactions count too: far more of them than the application stores are duplicates.",
    settled_by: "pgclinic lab run duplicate-inserts.",
    ..Sign::PLAIN
};

const DEAD_ROWS: Sign = Sign {
    name: "dead-rows",
    family: Family::FailedWrites,
    metric: "pgclinic_dead_rows",
    summary: "dead rows of tables of users, as the server estimates",
    source: Source::Column(&ROWS, "dead"),
    normal: "Up to a fifth of the live rows, which is where autovacuum begins.",
    meaning: "Updates, deletes and failed inserts that vacuum has not removed yet. Growth without end means that vacuum is held back.",
    settled_by: "pgclinic measure counts the bytes exactly; oldest-transaction says who holds vacuum back.",
    ..Sign::PLAIN
};

const DEAD_ROWS_OF_RELATIONS: Sign = Sign {
    name: "dead-rows-of-relations",
    family: Family::FailedWrites,
    metric: "pgclinic_relation_dead_rows",
    summary: "dead rows of the relations with most of them",
    source: Source::Column(&DEAD, "dead"),
    gather: Gather::Max,
    normal: "Less than a fifth of the table.",
    meaning: "The tables that bloat, catalogs among them.",
    settled_by: "pgclinic measure --relation NAME.",
    ..Sign::PLAIN
};

/// Most transactions of a database fail, and they are many.
fn rollbacks(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let failing = values.iter().find_map(|own| {
        let database = named(own, "database");
        let rollbacks = own.per_second?;
        let commits = sample.growth(&TRANSACTIONS, &[database], "commits").ok()?;
        let is_most = rollbacks >= ROLLBACKS_MIN && rollbacks > commits;
        is_most.then(|| {
            format!("{rollbacks:.0} a second in database {database}, and {commits:.0} commits")
        })
    })?;
    Some((SignState::Warning, failing))
}
