//! The incident: autovacuum cuts the empty end off a catalog, and a new session that must read it waits.

use std::time::{Duration, Instant};

use pgclinic_servers::Session;

use crate::asking::number;
use crate::bench::Bench;
use crate::error::{Error, Result};

/// Catalogs that churn fills with dead rows.
const CATALOGS: [&str; 6] = [
    "pg_attribute",
    "pg_class",
    "pg_attrdef",
    "pg_type",
    "pg_depend",
    "pg_index",
];

/// How long to wait for autovacuum.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two probes.
const PAUSE: Duration = Duration::from_millis(2);

/// Makes the probe's table, and keeps VACUUM from cutting catalogs where the arm says so.
pub(super) fn prepare(bench: &Bench<'_>, session: &mut Session) -> Result<()> {
    session
        .execute("CREATE TABLE probe (id integer PRIMARY KEY, word text); INSERT INTO probe VALUES (1, 'here')")
        .map_err(Error::sql("making the probe's table"))?;
    if bench.arm().name != "no-truncate" {
        return Ok(());
    }
    for catalog in CATALOGS {
        session
            .execute(&format!(
                "SET allow_system_table_mods = on; ALTER TABLE pg_catalog.{catalog} SET (vacuum_truncate = off)"
            ))
            .map_err(Error::sql("setting vacuum_truncate off"))?;
    }
    Ok(())
}

/// Restarts with an eager autovacuum and probes until it has cleaned `pg_attribute`. Gives the longest probe in
/// milliseconds, if autovacuum came, and the bytes of `pg_attribute` afterwards.
pub(super) fn probe(bench: &mut Bench<'_>) -> Result<(Option<f64>, f64)> {
    for (name, value) in [
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_cost_delay", "0"),
        ("autovacuum_vacuum_threshold", "50"),
        ("autovacuum_vacuum_scale_factor", "0.01"),
    ] {
        bench.set(name, value);
    }
    bench.restart()?;
    let mut watcher = bench.connect()?;
    // The probe's first session fills caches of files that later ones read.
    read_probe(bench)?;
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    let mut cleaned = false;
    while !cleaned && start.elapsed() < PATIENCE {
        let begin = Instant::now();
        read_probe(bench)?;
        longest = longest.max(begin.elapsed());
        cleaned = is_cleaned(&mut watcher)?;
        bench.check_interrupted()?;
        std::thread::sleep(PAUSE);
    }
    let kept = number(&mut watcher, "SELECT pg_relation_size('pg_attribute')")?;
    Ok((cleaned.then_some(longest.as_secs_f64() * 1e3), kept))
}

fn read_probe(bench: &mut Bench<'_>) -> Result<()> {
    let mut session = bench.connect()?;
    session
        .execute("SELECT word FROM probe WHERE id = 1")
        .map_err(Error::sql("probing"))
}

/// Autovacuum has been over `pg_attribute` since the restart, or finds nothing to do there.
fn is_cleaned(watcher: &mut Session) -> Result<bool> {
    let done = watcher
        .query_value(
            "SELECT last_autovacuum IS NOT NULL OR n_dead_tup < 50 + 0.01 * (SELECT reltuples FROM pg_class WHERE oid = relid) \
             FROM pg_stat_sys_tables WHERE relid = 'pg_attribute'::regclass",
        )
        .map_err(Error::sql("asking whether autovacuum has been there"))?;
    Ok(done.as_deref() == Some("t"))
}
