//! System catalogs of the database, and the DDL that fills them (`pg_stat_sys_tables`).

use pgclinic_model::document::{SignKind, SignState, SignUnit, SignValue};

use super::failed_writes::TRANSACTIONS;
use super::{RESET_OF_DATABASE, measured, named, of};
use crate::assess::Sample;
use crate::need::Need;
use crate::probe::Probe;
use crate::sign::{Alert, Family, Sign, Source, Urgency};

pub(super) const SIGNS: &[&Sign] = &[
    &CATALOG_BYTES,
    &CATALOG_DEAD_ROWS,
    &RELATIONS_CREATED,
    &SHORT_LIVED,
    &TEMPORARY_RELATIONS,
    &TEMPORARY_FILES,
    &TEMPORARY_BYTES,
    &VACUUM_WORKERS,
    &VACUUM_TRUNCATING,
    &VACUUM_WAITERS,
    &measured::DEAD,
    &measured::FREE,
    &measured::DENSITY,
    &measured::CATALOGS,
    &measured::TOAST,
    &measured::LARGE_OBJECTS,
    &measured::LARGE_OBJECT_BYTES,
    &measured::AGE,
];

/// Relations a second beyond which the catalogs grow visibly within a day.
const CREATED_MAX: f64 = 5.0;

static CATALOGS: Probe = Probe {
    name: "catalogs",
    labels: &["database", "catalog"],
    columns: &["bytes", "dead", "live"],
    needs: &[Need::Counts],
    sql: |_| {
        "SELECT current_database(), c.relname, pg_total_relation_size(c.oid), s.n_dead_tup, s.n_live_tup \
         FROM pg_class c JOIN pg_stat_sys_tables s ON s.relid = c.oid \
         WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relname IN \
         ('pg_attribute', 'pg_class', 'pg_depend', 'pg_type', 'pg_index', 'pg_attrdef', 'pg_constraint', 'pg_statistic', \
          'pg_shdepend', 'pg_proc', 'pg_largeobject', 'pg_largeobject_metadata') ORDER BY 1, 2"
            .to_owned()
    },
    every_s: 10,
    cost: "The sizes of 12 catalogs from the file system, every 10 s.",
    ..Probe::PLAIN
};

static CREATED: Probe = Probe {
    name: "relations created",
    labels: &["database"],
    columns: &["created", "types created", "types dropped"],
    has_reset: true,
    needs: &[Need::Counts],
    sql: |_| {
        format!(
            "SELECT current_database(), c.n_tup_ins, t.n_tup_ins, t.n_tup_del, {RESET_OF_DATABASE} \
             FROM pg_stat_sys_tables c, pg_stat_sys_tables t WHERE c.relid = 'pg_class'::regclass AND t.relid = 'pg_type'::regclass"
        )
    },
    ..Probe::PLAIN
};

static TEMPORARY: Probe = Probe {
    name: "temporary relations",
    labels: &["database"],
    columns: &["relations"],
    sql: |_| {
        "SELECT current_database(), count(*) FROM pg_class WHERE relpersistence = 't'".to_owned()
    },
    every_s: 60,
    cost: "A pass over pg_class, once a minute.",
    ..Probe::PLAIN
};

static VACUUM: Probe = Probe {
    name: "vacuum",
    columns: &["workers", "truncating", "waiters"],
    needs: &[Need::AllStatistics],
    sql: |_| {
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'), \
         (SELECT count(*) FROM pg_stat_progress_vacuum WHERE phase = 'truncating heap'), \
         (SELECT count(*) FROM pg_stat_activity a WHERE a.wait_event_type = 'Lock' AND EXISTS \
         (SELECT FROM unnest(pg_blocking_pids(a.pid)) b(pid) JOIN pg_stat_activity v ON v.pid = b.pid \
         WHERE v.backend_type = 'autovacuum worker'))"
            .to_owned()
    },
    cost: "A few rows of statistics from shared memory, and the locks of each session that waits for one.",
    ..Probe::PLAIN
};

const CATALOG_BYTES: Sign = Sign {
    name: "catalog-bytes",
    family: Family::Catalogs,
    metric: "pgclinic_catalog_bytes",
    summary: "size of the large catalogs with their indexes",
    unit: SignUnit::Bytes,
    source: Source::Column(&CATALOGS, "bytes"),
    normal: "A few MiB, or some hundred bytes for each column of each table.",
    meaning: "Catalogs of gigabytes make every plan, every login and every dump slow; only VACUUM FULL gives the space back, and it locks everybody out.",
    settled_by: "pgclinic measure --relation 'pg_catalog.*' has the exact bloat; pgclinic measure catalog-cost DDL.sql what a script costs.",
    alerts: &[Alert {
        name: "PgclinicCatalogGrows",
        expression: "predict_linear(pgclinic_catalog_bytes[6h], 7 * 86400) > 1e10 and deriv(pgclinic_catalog_bytes[6h]) > 1000",
        hold: "2h",
        keep: "1h",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: {{ $labels.catalog }} of database {{ $labels.database }} has {{ $value | humanize1024 }} bytes in a week at the present rate",
    }],
    ..Sign::PLAIN
};

const CATALOG_DEAD_ROWS: Sign = Sign {
    name: "catalog-dead-rows",
    family: Family::Catalogs,
    metric: "pgclinic_catalog_dead_rows",
    summary: "dead rows of the large catalogs, as the server estimates",
    source: Source::Column(&CATALOGS, "dead"),
    assess: Some(dead_rows),
    normal: "Less than a fifth of the live rows.",
    meaning: "Tables that come and go leave dead rows in the catalogs faster than autovacuum removes them.",
    settled_by: "pgclinic lab run catalog-churn with the rate of relations-created.",
    ..Sign::PLAIN
};

const RELATIONS_CREATED: Sign = Sign {
    name: "relations-created",
    family: Family::Catalogs,
    metric: "pgclinic_relations_created_total",
    summary: "relations created: tables, indexes, TOAST tables, sequences",
    kind: SignKind::Counter,
    source: Source::Column(&CREATED, "created"),
    assess: Some(created),
    normal: "0 but for deployments.",
    meaning: "An application that creates temporary tables for each request; one reporting table with its TOAST table and index writes about a hundred rows of catalogs.",
    settled_by: "pgclinic measure catalog-cost DDL.sql --traffic; log_statement = ddl names the statements.",
    alerts: &[Alert {
        name: "PgclinicRelationsCreated",
        expression: "rate(pgclinic_relations_created_total[10m]) > 5",
        hold: "30m",
        keep: "30m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: {{ $value | humanize }} relations a second are created in database {{ $labels.database }}",
    }],
    ..Sign::PLAIN
};

const SHORT_LIVED: Sign = Sign {
    name: "short-lived-tables",
    family: Family::Catalogs,
    metric: "pgclinic_short_lived_tables_per_minute",
    summary: "tables created and dropped again, a minute: temporary ones for the most part",
    source: Source::Computed(&[&CREATED], short_lived),
    labels: &["database"],
    normal: "0, or what a nightly job makes.",
    meaning: "Each of them writes and deletes rows of some ten catalogs, which autovacuum has to keep up with.",
    settled_by: "pgclinic measure catalog-cost DDL.sql --traffic; pgclinic lab run catalog-churn at this rate.",
    ..Sign::PLAIN
};

const TEMPORARY_RELATIONS: Sign = Sign {
    name: "temporary-relations",
    family: Family::Catalogs,
    metric: "pgclinic_temporary_relations",
    summary: "temporary relations at this sample",
    source: Source::Column(&TEMPORARY, "relations"),
    normal: "A few for each session that uses them.",
    meaning: "Sessions that never end keep theirs; those of crashed sessions hold back the freezing of ids until autovacuum drops them.",
    settled_by: "pg_class and pg_namespace: pg_temp_N is the schema of a session.",
    ..Sign::PLAIN
};

const TEMPORARY_FILES: Sign = Sign {
    name: "temporary-files",
    family: Family::Catalogs,
    metric: "pgclinic_temporary_files_total",
    summary: "files that sorts and hashes wrote beyond work_mem",
    kind: SignKind::Counter,
    source: Source::Column(&TRANSACTIONS, "temporary files"),
    normal: "Few.",
    meaning: "Queries need more than work_mem, or a plan estimates far too few rows.",
    settled_by: "log_temp_files = 0 names the statements; EXPLAIN (ANALYZE, BUFFERS).",
    ..Sign::PLAIN
};

const TEMPORARY_BYTES: Sign = Sign {
    name: "temporary-bytes",
    family: Family::Catalogs,
    metric: "pgclinic_temporary_bytes_total",
    summary: "bytes that sorts and hashes wrote beyond work_mem",
    kind: SignKind::Counter,
    unit: SignUnit::Bytes,
    source: Source::Column(&TRANSACTIONS, "temporary bytes"),
    normal: "Small beside the WAL.",
    meaning: "As for temporary-files; the disk of pgsql_tmp carries it.",
    settled_by: "log_temp_files = 0 names the statements.",
    ..Sign::PLAIN
};

const VACUUM_WORKERS: Sign = Sign {
    name: "autovacuum-workers",
    family: Family::Catalogs,
    metric: "pgclinic_autovacuum_workers",
    summary: "autovacuum workers at work",
    source: Source::Column(&VACUUM, "workers"),
    assess: Some(workers),
    normal: "Below autovacuum_max_workers most of the time.",
    meaning: "All of them busy for hours: vacuum does not keep up, and small tables that change much wait.",
    settled_by: "pg_stat_progress_vacuum; autovacuum_vacuum_cost_limit.",
    ..Sign::PLAIN
};

const VACUUM_TRUNCATING: Sign = Sign {
    name: "vacuum-truncating",
    family: Family::Catalogs,
    metric: "pgclinic_vacuum_truncating",
    summary: "vacuums that give back the end of a table, under a lock",
    source: Source::Column(&VACUUM, "truncating"),
    normal: "0, or 1 for a moment.",
    meaning: "Truncation takes an ACCESS EXCLUSIVE lock: on a catalog all plans wait, on a standby queries are canceled.",
    settled_by: "pgclinic lab run catalog-churn has the stall; vacuum_truncate = off avoids it.",
    ..Sign::PLAIN
};

const VACUUM_WAITERS: Sign = Sign {
    name: "waiting-for-autovacuum",
    family: Family::Catalogs,
    metric: "pgclinic_waiting_for_autovacuum",
    summary: "sessions that wait for a lock which autovacuum holds",
    source: Source::Column(&VACUUM, "waiters"),
    assess: Some(waiters),
    normal: "0: autovacuum gives way after deadlock_timeout.",
    meaning: "It truncates a table, on whose end everybody waits, or it freezes ids before they run out and gives way to nobody.",
    settled_by: "pg_locks and pg_stat_progress_vacuum; vacuum_truncate = off for the table; xid-age.",
    alerts: &[Alert {
        name: "PgclinicWaitingForAutovacuum",
        expression: "pgclinic_waiting_for_autovacuum > 0",
        hold: "5m",
        keep: "5m",
        urgency: Urgency::Warning,
        summary: "{{ $labels.server }}: {{ $value | humanize }} sessions wait for a lock of autovacuum",
    }],
    ..Sign::PLAIN
};

/// A table has two rows of pg_type, itself and its array; an index has none.
fn short_lived(sample: &Sample<'_>) -> Result<Vec<SignValue>, String> {
    let database = sample.facts.database.as_str();
    let rate = |column| sample.growth(&CREATED, &[database], column);
    let types = rate("types created")?.min(rate("types dropped")?);
    Ok(vec![of("database", database, types / 2.0 * 60.0)])
}

fn waiters(_sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let own = values.first()?.value;
    let words = || format!("{own:.0} waiting for a lock of autovacuum");
    (own > 0.0).then(|| (SignState::Warning, words()))
}

fn dead_rows(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    const DEAD_MIN: f64 = 10_000.0;
    let table = sample.table(&CATALOGS).ok()?;
    let live = CATALOGS.cell_of("live")?;
    let worst = values.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
    let (database, catalog) = (named(worst, "database"), named(worst, "catalog"));
    let live = table.cell(&[database, catalog], live)?;
    let is_much = worst.value > DEAD_MIN && worst.value > live;
    let words = format!(
        "{catalog} has {:.0} dead rows and {live:.0} live ones",
        worst.value
    );
    is_much.then_some((SignState::Warning, words))
}

fn created(_moment: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let own = values.first()?;
    let rate = own.per_second.filter(|rate| *rate > CREATED_MAX)?;
    let words = format!(
        "{rate:.0} relations a second in database {}",
        named(own, "database")
    );
    Some((SignState::Warning, words))
}

fn workers(sample: &Sample<'_>, values: &[SignValue]) -> Option<(SignState, String)> {
    let most = sample.facts.number("autovacuum_max_workers")?;
    let all = values.first()?.value;
    (all >= most).then(|| (SignState::Ok, format!("all {most:.0} of them are busy")))
}
