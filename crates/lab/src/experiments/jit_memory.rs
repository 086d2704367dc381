//! Does a long session leak with JIT?
//!
//! LLVM keeps what it learned of inlined functions in its context for as long as the context lives.
//! Up to 15.5 that was as long as the session; since then the context is made anew after 100 uses
//! (`LLVMJIT_LLVM_CONTEXT_REUSE_MAX` in `src/backend/jit/llvm/llvmjit.c`).

use std::time::Instant;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::{Arm, Better, Cell, Metric, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, with_the_first_arm};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::samplers::{Memory, memory_of};
use crate::statistics::theil_sen;

/// The query of the report that started it: only two sub-selects leak.
const QUERY: &str = "DO $$BEGIN FOR i IN 1..%N% LOOP \
    PERFORM id, (SELECT count(*) FROM leak_test x WHERE x.id = l.id), \
    (SELECT count(*) FROM leak_test y WHERE y.id = l.id) FROM leak_test l; END LOOP; END$$";

/// Queries after which 15.6 and later drop what LLVM has gathered (`LLVMJIT_LLVM_CONTEXT_REUSE_MAX`
/// in `llvmjit.c`).
const QUERIES_A_CONTEXT: f64 = 100.0;

/// Readings of the session's memory in one run.
const READINGS: u32 = 40;

/// Readings at the start that are left out of the slope: caches fill up once.
const SETTLING: usize = 10;

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
         inlines. Its memory is read between the queries from the kernel. What counts is the slope of its private memory; \
         resident memory, which the published figures show, includes shared buffers that it has touched.\n\n\
         JIT is forced for every query (all its cost limits are 0), so that a small table shows what a large one does; \
         at the published scale the limits are as shipped. The servers that are fetched have no JIT: give those that do \
         with --server."
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
                Arm::new("jit-off", "JIT off").with_setting("jit", "off"),
                on("15.5", "PostgreSQL 15.5, before the change").on_version("15.5"),
                on("15.6", "PostgreSQL 15.6, with the change").on_version("15.6"),
            ],
            axes: Vec::new(),
            blocks: scale.pick(1, 3, 3),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
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

    fn cost(&self, _cell: &Cell, scale: Scale) -> Cost {
        Cost::seconds(scale.pick(10.0, 20.0, 900.0)).with_data(16 << 20)
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
        let queries = bench.scale().pick(80_u32, 400, 5_000);
        let each = queries / READINGS;
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
        for done in 1..=READINGS {
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
        let settings = sides_by_side(matrix, "jit-on", &["no-inlining", "jit-off"]);
        let releases = sides_by_side(matrix, "15.5", &["15.6"]);
        let decided = [settings, releases];
        let all = decided
            .iter()
            .flat_map(|matrix| with_the_first_arm(matrix, metric, subject, &advice));
        all.collect()
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let readings = |result: &RunResult| Some(result.series.get("private_bytes")?.last()?[0]);
        let queries = results.iter().filter_map(readings).fold(0.0, f64::max);
        let short = queries > 0.0 && queries < 3.0 * QUERIES_A_CONTEXT;
        let words = "from 15.6 on the server lets go of LLVM's memory every 100 queries: these runs are too short to tell a leak from what it keeps until then; \
                     use --scale quick";
        short.then(|| words.to_owned()).into_iter().collect()
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "jit-off" => "ALTER SYSTEM SET jit = off; SELECT pg_reload_conf();",
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
    let per_1000 = |points: &[[f64; 2]]| {
        let settled = points.get(SETTLING..).unwrap_or(points);
        theil_sen::slope(settled).map_or(0.0, |bytes| bytes * 1_000.0 / 1024.0)
    };
    Measured::default()
        .with("private_kb_per_1000", per_1000(&private))
        .with("resident_kb_per_1000", per_1000(&resident))
        .with(
            "private_bytes_end",
            private.last().map_or(0.0, |point| point[1]),
        )
        .with_series("private_bytes", private)
        .with_series("resident_bytes", resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_at_the_start_is_no_leak_and_a_leak_is_one() {
        let at = |queries: f64, kilobytes: u64| {
            let memory = Memory {
                private_bytes: kilobytes * 1024,
                ..Memory::default()
            };
            (queries, memory)
        };
        let flat: Vec<_> = (0..=40_u32)
            .map(|n| at(f64::from(n) * 10.0, if n < 3 { 0 } else { 900 }))
            .collect();
        assert_eq!(measured(&flat).metrics["private_kb_per_1000"], 0.0);
        let leak: Vec<_> = (0..=40_u32)
            .map(|n| at(f64::from(n) * 10.0, u64::from(n) * 800))
            .collect();
        assert_eq!(
            measured(&leak).metrics["private_kb_per_1000"].round(),
            80_000.0
        );
    }
}
