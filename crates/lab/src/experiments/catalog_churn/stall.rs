//! The incident: autovacuum cuts the empty end off a catalog, and a new session that must read it
//! waits.
//!
//! ```text
//! bulk (once, in the base)  ─► pg_attribute  [ rows of the cluster | rows of tables that are gone ............ ]
//! autovacuum let loose      ─► ACCESS EXCLUSIVE, the end is looked through and cut, shared_buffers are searched for it
//! probe, again and again    ─► connects and reads a small table: its longest time is the stall
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pgclinic_servers::Session;

use crate::asking::{number, wal_bytes};
use crate::bench::Bench;
use crate::cell::RunResult;
use crate::decision::words::figure;
use crate::error::{Error, Result};
use crate::experiment::{Measured, Scale};
use crate::statistics::quantile::median;

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
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two probes.
const PAUSE: Duration = Duration::from_millis(2);

/// Between two questions whether autovacuum is done: the question itself may wait for a catalog, so
/// that it is seldom asked.
const ASKED_EVERY: Duration = Duration::from_millis(250);

/// Columns of a table of the bulk.
const COLUMNS: u32 = 100;

/// Bytes that such a table leaves in the catalogs and their indexes.
const TABLE_BYTES: u64 = 24_000;

/// Sum over all catalogs with their indexes.
pub(super) const CATALOG_BYTES: &str = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class \
                             WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'";

/// Tables of the bulk: created and dropped, one after the other.
fn tables(scale: Scale) -> u32 {
    scale.pick(500, 10_000, 150_000)
}

/// What the bulk leaves in the catalogs.
pub(super) fn bulk_bytes(scale: Scale) -> u64 {
    u64::from(tables(scale)) * TABLE_BYTES
}

/// Makes the probe's table, which is there before the catalogs are bloated: its rows do not stand
/// at their ends.
pub(super) fn make_probe(session: &mut Session) -> Result<()> {
    session
        .execute("CREATE TABLE probe (id integer PRIMARY KEY, word text); INSERT INTO probe VALUES (1, 'here')")
        .map_err(Error::sql("making the probe's table"))
}

/// Bloats the catalogs by tables that are created and dropped, so that the end of `pg_attribute`
/// holds dead rows only, and notes by how much.
pub(super) fn bulk(scale: Scale, session: &mut Session) -> Result<()> {
    let failed = || Error::sql("bloating the catalogs");
    let mut execute = |sql: &str| session.execute(sql).map_err(failed());
    // Nobody cleans up meanwhile. The reset is taken up by the next start.
    execute("ALTER SYSTEM SET autovacuum = off")?;
    execute("SELECT pg_reload_conf()")?;
    execute("CREATE TABLE bulk (catalog_bytes float8, wal_bytes float8)")?;
    make_probe(session)?;
    let (bytes, wal) = (number(session, CATALOG_BYTES)?, wal_bytes(session)?);
    let tables = tables(scale);
    session
        .execute(&format!(
            "DO $$ BEGIN FOR i IN 1 .. {tables} LOOP \
             EXECUTE 'CREATE TABLE short_lived (' || (SELECT string_agg('c' || g || ' integer', ', ') FROM generate_series(1, {COLUMNS}) g) || ')'; \
             EXECUTE 'DROP TABLE short_lived'; COMMIT; END LOOP; END $$"
        ))
        .map_err(failed())?;
    let thousands = f64::from(tables) / 1_000.0;
    let grown = (number(session, CATALOG_BYTES)? - bytes) / thousands;
    let written = (wal_bytes(session)? - wal) / thousands;
    session
        .execute(&format!("INSERT INTO bulk VALUES ({grown}, {written})"))
        .map_err(failed())?;
    session
        .execute("ALTER SYSTEM RESET autovacuum")
        .map_err(failed())
}

/// What the bulk has grown the catalogs by, for 1,000 tables.
pub(super) fn grown_by_bulk(session: &mut Session) -> Result<Measured> {
    let mut of = |column: &str| number(session, &format!("SELECT {column} FROM bulk"));
    Ok(Measured::default()
        .with("catalog_bytes", of("catalog_bytes")?)
        .with("wal_bytes", of("wal_bytes")?))
}

/// Keeps VACUUM from cutting catalogs.
pub(super) fn forbid_cutting(session: &mut Session) -> Result<()> {
    for catalog in CATALOGS {
        session
            .execute(&format!(
                "SET allow_system_table_mods = on; ALTER TABLE pg_catalog.{catalog} SET (vacuum_truncate = off)"
            ))
            .map_err(Error::sql("setting vacuum_truncate off"))?;
    }
    Ok(())
}

/// The files of `pg_attribute`. They are looked at as files, since the server tells their size to
/// nobody while it cuts.
struct Files {
    first: PathBuf,
}

impl Files {
    fn find(bench: &Bench<'_>, session: &mut Session) -> Result<Self> {
        let asked = "SELECT pg_relation_filepath('pg_attribute')";
        let path = session.query_value(asked).map_err(Error::sql(asked))?;
        let path = path.ok_or_else(|| Error::Empty("pg_attribute has no file".to_owned()))?;
        Ok(Self {
            first: bench.pgdata().join(path),
        })
    }

    /// All segments together.
    fn bytes(&self) -> f64 {
        let segment = |number: u32| match number {
            0 => self.first.clone(),
            _ => self.first.with_extension(number.to_string()),
        };
        let lengths = (0..).map_while(|number| Some(segment(number).metadata().ok()?.len()));
        lengths.sum::<u64>() as f64
    }
}

/// The probes of one run.
#[derive(Default)]
struct Probes {
    longest_ms: f64,
    /// The longest of those between whose begin and the next one's the files became shorter.
    longest_of_cuts_ms: Option<f64>,
    /// (s, ms) and (s, bytes at the begin).
    took: Vec<[f64; 2]>,
    sizes: Vec<[f64; 2]>,
}

impl Probes {
    /// Takes what the files have at the begin of the next probe, or behind the last one.
    fn note_size(&mut self, at: f64, bytes: f64) {
        let before = self.sizes.last().map(|[_, bytes]| *bytes);
        let last = self.took.last().map(|[_, ms]| *ms);
        if before.is_some_and(|before| bytes < before) {
            let longest = self.longest_of_cuts_ms.unwrap_or(0.0);
            self.longest_of_cuts_ms = last.map(|last| longest.max(last));
        }
        self.sizes.push([at, bytes]);
    }

    fn note(&mut self, at: f64, took: Duration) {
        let ms = took.as_secs_f64() * 1e3;
        self.longest_ms = self.longest_ms.max(ms);
        self.took.push([at, ms]);
    }
}

/// Restarts with an eager autovacuum and probes until it has been over `pg_attribute`; adds what
/// was seen. A run that autovacuum did not come to has no stall, and says so.
pub(super) fn probe(bench: &mut Bench<'_>, measured: Measured) -> Result<Measured> {
    for (name, value) in [
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_cost_delay", "0"),
        ("autovacuum_vacuum_threshold", "50"),
        ("autovacuum_vacuum_scale_factor", "0.01"),
    ] {
        bench.set(name, value);
    }
    let (files, visits, before) = {
        let mut session = bench.connect()?;
        let files = Files::find(bench, &mut session)?;
        let before = files.bytes();
        (files, number(&mut session, VISITS)?, before)
    };
    bench.restart()?;
    let mut watcher = bench.connect()?;
    // The first session fills caches of files that later ones read.
    read_probe(bench)?;
    let (start, mut asked) = (Instant::now(), Instant::now());
    let (mut probes, mut is_cleaned) = (Probes::default(), false);
    while !is_cleaned && start.elapsed() < PATIENCE {
        let begin = Instant::now();
        let at = (begin - start).as_secs_f64();
        probes.note_size(at, files.bytes());
        read_probe(bench)?;
        probes.note(at, begin.elapsed());
        if asked.elapsed() >= ASKED_EVERY {
            is_cleaned = has_cleaned(&mut watcher, visits)?;
            asked = Instant::now();
        }
        bench.check_interrupted()?;
        std::thread::sleep(PAUSE);
    }
    let kept = files.bytes();
    probes.note_size(start.elapsed().as_secs_f64(), kept);
    if !is_cleaned {
        bench.overlap("autovacuum did not come by within the time, so no stall was measured");
    }
    let mut measured = measured
        .with("kept_bytes", kept)
        .with("cut_bytes", before - kept)
        .with_series("probe_ms", probes.took)
        .with_series("attribute_bytes", probes.sizes);
    let stalls = [
        ("stall_ms", is_cleaned.then_some(probes.longest_ms)),
        ("cut_stall_ms", probes.longest_of_cuts_ms),
    ];
    for (name, stall) in stalls {
        let stall = stall.map(|ms| (name.to_owned(), ms));
        measured.metrics.extend(stall);
    }
    Ok(measured)
}

fn read_probe(bench: &mut Bench<'_>) -> Result<()> {
    let mut session = bench.connect()?;
    session
        .execute("SELECT word FROM probe WHERE id = 1")
        .map_err(Error::sql("probing"))
}

/// How often autovacuum has been over `pg_attribute`; a visit counts when it is over, the cut
/// included.
const VISITS: &str =
    "SELECT autovacuum_count FROM pg_stat_sys_tables WHERE relid = 'pg_attribute'::regclass";

/// Autovacuum has been over `pg_attribute` once more, or finds nothing to do there.
fn has_cleaned(watcher: &mut Session, visits: f64) -> Result<bool> {
    let done = watcher
        .query_value(&format!(
            "SELECT autovacuum_count > {visits} OR n_dead_tup < 50 + 0.01 * (SELECT reltuples FROM pg_class WHERE oid = relid) \
             FROM pg_stat_sys_tables WHERE relid = 'pg_attribute'::regclass"
        ))
        .map_err(Error::sql("asking whether autovacuum has been there"))?;
    Ok(done.as_deref() == Some("t"))
}

/// The incident in words, cutting and not, from the runs with these buffers.
pub(super) fn told(
    buffers: &str,
    cutting: &[&RunResult],
    keeping: &[&RunResult],
) -> Option<String> {
    let middle = |runs: &[&RunResult], name: &str| {
        let values = runs.iter().filter_map(|run| run.metrics.get(name).copied());
        median(&values.collect::<Vec<f64>>())
    };
    let stall = |runs: &[&RunResult]| middle(runs, "stall_ms").map(round);
    let cut = |runs: &[&RunResult]| Some(round(middle(runs, "cut_bytes")? / 1e6));
    let size = round((middle(cutting, "cut_bytes")? + middle(cutting, "kept_bytes")?) / 1e6);
    let meanwhile = middle(cutting, "cut_stall_ms").map_or_else(String::new, |ms| {
        format!(" ({} ms while it was being truncated)", round(ms))
    });
    Some(format!(
        "shared_buffers {buffers}: with vacuum_truncate on, autovacuum truncated {} MB off a pg_attribute of {size} MB, and the longest \
         SELECT took {} ms{meanwhile}; with it off, {} MB were truncated, and the longest SELECT took {} ms",
        cut(cutting)?,
        stall(cutting)?,
        cut(keeping)?,
        stall(keeping)?,
    ))
}

fn round(number: f64) -> String {
    figure(number.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_belongs_to_a_cut_when_the_files_are_shorter_at_the_next_one() {
        let mut probes = Probes::default();
        let sizes = [800.0, 800.0, 500.0, 500.0, 300.0];
        let took = [90, 7, 3, 5];
        for (at, ms) in took.into_iter().enumerate() {
            probes.note_size(at as f64, sizes[at]);
            probes.note(at as f64, Duration::from_millis(ms));
        }
        probes.note_size(4.0, sizes[4]);
        assert_eq!(probes.longest_ms, 90.0);
        // The second probe and the fourth one.
        assert_eq!(probes.longest_of_cuts_ms, Some(7.0));
    }
}
