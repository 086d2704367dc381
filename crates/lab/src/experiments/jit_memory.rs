//! Does a long session leak with JIT?
//!
//! LLVM keeps what it learned of inlined functions in its context for as long as the context lives.
//! Up to 15.5 that was as long as the session; since then the context is made anew after 100 uses
//! (`LLVMJIT_LLVM_CONTEXT_REUSE_MAX` in `src/backend/jit/llvm/llvmjit.c`). A session of either
//! grows at first; only what it goes on to add after that is a leak, which `leak.rs` judges.

mod leak;

use std::time::Instant;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::{Arm, Better, Cell, Metric, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, Withheld, with_the_first_arm};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::samplers::{Memory, memory_of};

/// The query of the report that started it: only two sub-selects leak.
const QUERY: &str = "DO $$BEGIN FOR i IN 1..%N% LOOP \
    PERFORM id, (SELECT count(*) FROM leak_test x WHERE x.id = l.id), \
    (SELECT count(*) FROM leak_test y WHERE y.id = l.id) FROM leak_test l; END LOOP; END$$";

/// The arm that compiles nothing.
const JIT_OFF: &str = "jit-off";

/// The experiment that watches the memory of a session that compiles its queries.
pub struct JitMemory;

impl Experiment for JitMemory {
    fn name(&self) -> &str {
        "jit-memory"
    }

    fn question(&self) -> &str {
        "Does a long session leak memory with JIT?"
    }

    fn explain(&self) -> &str {
        "One session runs the same query over and over: two sub-selects for each row of a table, which JIT compiles and \
         inlines. Its memory is read between the queries from the kernel. A server with the fix of 2024Q1 (16.2, 15.6, 14.11, \
         13.14, 12.18, and 17) keeps what LLVM gathers for 100 queries and then lets go of it, so that what counts is not how \
         a session begins, but the slope of what it still holds at its lowest in each further hundred. Where that slope is far \
         below what the first hundred kept, the session does not leak, and no setting is advised. Runs that are too short for \
         that give no slope. Resident memory, which the published figures show, includes shared buffers that the session has \
         touched.\n\n\
         JIT is forced for every query (all its cost limits are 0), so that a small table shows what a large one does; \
         at the published scale the limits are as shipped. The servers that are fetched have no JIT: 15.5 and 15.6 that \
         have it are given with --server, and without them their arms are impossible."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let on = |name: &str, words: &str| {
            let limit = scale.pick("0", "0", "");
            let names = [
                "jit_above_cost",
                "jit_inline_above_cost",
                "jit_optimize_above_cost",
            ];
            let forced = names.into_iter().filter(|_| !limit.is_empty());
            forced.fold(
                Arm::new(name, words).with_setting("jit", "on"),
                |arm, name| arm.with_setting(name, limit),
            )
        };
        Matrix {
            arms: vec![
                on("jit-on", "JIT with inlining"),
                on("no-inlining", "JIT, jit_inline_above_cost = -1")
                    .with_setting("jit_inline_above_cost", "-1"),
                Arm::new(JIT_OFF, "JIT off").with_setting("jit", "off"),
                on("15.5", "PostgreSQL 15.5, before the change").on_version("15.5"),
                on("15.6", "PostgreSQL 15.6, with the change").on_version("15.6"),
            ],
            axes: Vec::new(),
            blocks: scale.pick(1, 2, 3),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::exact(
                "private_kb_first_100",
                "private memory kept after the first hundred queries, beyond that after the first ones",
                "kB",
                Better::Lower,
            ),
            Metric::exact(
                "private_kb_per_1000",
                "growth of private memory for each 1,000 queries",
                "kB",
                Better::Lower,
            ),
            Metric::exact(
                "resident_kb_per_1000",
                "growth of resident memory for each 1,000 queries",
                "kB",
                Better::Lower,
            ),
            Metric::exact(
                "private_bytes_end",
                "private memory at the end",
                "bytes",
                Better::Lower,
            ),
            Metric::timing("query_ms", "time of a query", "ms", Better::Lower),
        ]
    }

    fn needs(&self, _cell: &Cell, arm: &Arm) -> Vec<Need> {
        match arm.settings.get("jit").map(String::as_str) {
            Some("off") => Vec::new(),
            _ => vec![Need::Jit],
        }
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let seconds = match cell.arm.as_str() {
            JIT_OFF => scale.pick(2.0, 4.0, 300.0),
            _ => scale.pick(10.0, 30.0, 900.0),
        };
        Cost::seconds(seconds).with_data(16 << 20)
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::shared("leak-test")
    }

    fn fill(&self, _base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let rows = scale.pick(100, 1_000, 100_000);
        session
            .execute(&format!(
                "CREATE TABLE leak_test (id integer PRIMARY KEY); \
                 INSERT INTO leak_test SELECT id FROM generate_series(1, {rows}) id"
            ))
            .map_err(Error::sql("filling the table"))?;
        session
            .execute("VACUUM (ANALYZE) leak_test")
            .map_err(Error::sql("cleaning the table"))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let queries = bench.scale().pick(120_u32, 400, 5_000);
        let each = leak::QUERIES_A_READING;
        let sql = QUERY.replace("%N%", &each.to_string());
        let mut session =
            bench.connect_to("postgres", &[("max_parallel_workers_per_gather", "0")])?;
        let pid = session
            .query_value("SELECT pg_backend_pid()")
            .map_err(Error::sql("asking for the backend"))?;
        let pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or(0);
        bench.watch(&["memory"])?;
        let start = Instant::now();
        let mut readings = vec![(0.0, read(pid)?)];
        for done in 1..=queries / each {
            bench.check_interrupted()?;
            session
                .execute(&sql)
                .map_err(Error::sql("running the query"))?;
            readings.push((f64::from(done * each), read(pid)?));
        }
        let seconds = start.elapsed().as_secs_f64();
        let sampled = bench.watched();
        Ok(measured(&readings)
            .beside(&sampled)
            .with("query_ms", seconds * 1e3 / f64::from(queries)))
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let advice = |arm: &Arm| self.advice(arm);
        let metric = "private_kb_per_1000";
        let subject = "growth of private memory for each 1,000 queries";
        let settings = sides_by_side(matrix, "jit-on", &["no-inlining", JIT_OFF]);
        let releases = sides_by_side(matrix, "15.5", &["15.6"]);
        let decided = [settings, releases];
        let all = decided
            .iter()
            .flat_map(|matrix| with_the_first_arm(matrix, metric, subject, &advice));
        all.collect()
    }

    fn withheld(&self, comparison: &Comparison, results: &[RunResult]) -> Option<Withheld> {
        let of_baseline =
            |result: &&RunResult| result.is_done() && result.cell.arm == comparison.baseline.arm;
        let runs: Vec<&RunResult> = results.iter().filter(of_baseline).collect();
        leak::withheld(&runs)
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let compiled = |result: &&RunResult| result.is_done() && result.cell.arm != JIT_OFF;
        let runs: Vec<&RunResult> = results.iter().filter(compiled).collect();
        leak::remarks(&runs)
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            JIT_OFF => "ALTER SYSTEM SET jit = off; SELECT pg_reload_conf();",
            "no-inlining" => {
                "ALTER SYSTEM SET jit_inline_above_cost = -1; SELECT pg_reload_conf();"
            }
            "15.6" => "run PostgreSQL 15.6 or later",
            _ => "leave JIT as it is",
        }
        .to_owned()
    }
}

/// Releases against each other, and ways to set JIT against each other; the one says nothing of the
/// other.
fn sides_by_side(matrix: &Matrix, base: &str, others: &[&str]) -> Matrix {
    let named = |name: &str| matrix.arms.iter().find(|arm| arm.name == name).cloned();
    let names = std::iter::once(base).chain(others.iter().copied());
    let arms: Vec<Arm> = names.filter_map(named).collect();
    let has_base = arms.first().is_some_and(|arm| arm.name == base);
    Matrix {
        arms: if has_base { arms } else { Vec::new() },
        ..matrix.clone()
    }
}

fn read(pid: u32) -> Result<Memory> {
    memory_of(pid).map_err(Error::io("read", format!("/proc/{pid}/smaps_rollup")))
}

/// Readings as (queries so far, memory).
fn measured(readings: &[(f64, Memory)]) -> Measured {
    let series = |of: fn(&Memory) -> u64| {
        let points = readings
            .iter()
            .map(|(queries, memory)| [*queries, of(memory) as f64]);
        points.collect::<Vec<_>>()
    };
    let (private, resident) = (
        series(|memory| memory.private_bytes),
        series(|memory| memory.resident_bytes),
    );
    let slope = |points: &[[f64; 2]]| leak::kb_per_1000(points).unwrap_or(f64::NAN);
    Measured::default()
        .with("private_kb_first_100", leak::kb_first_hundred(&private))
        .with("private_kb_per_1000", slope(&private))
        .with("resident_kb_per_1000", slope(&resident))
        .with(
            "private_bytes_end",
            private.last().map_or(0.0, |point| point[1]),
        )
        .with_series("private_bytes", private)
        .with_series("resident_bytes", resident)
}
