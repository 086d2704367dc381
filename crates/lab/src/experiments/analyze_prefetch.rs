//! What does `maintenance_io_concurrency` buy? ANALYZE reads a random sample of blocks; since 14 it
//! asks the kernel for blocks ahead of time, at most so many (`acquire_sample_rows` in
//! `analyze.c`), and since 18 through `io_method`.

use std::time::Instant;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point};
use crate::cost::Cost;
use crate::decision::{CardTone, Comparison, along_an_axis};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::table_profile::{Parts, SEED, TableShape};

/// The experiment that runs ANALYZE with several `maintenance_io_concurrency`.
#[derive(Debug, Clone)]
pub struct AnalyzePrefetch {
    shape: Option<TableShape>,
}

/// On pgbench's accounts.
pub static ANALYZE_PREFETCH: AnalyzePrefetch = AnalyzePrefetch { shape: None };

/// What a row of pgbench's accounts takes.
const ROW_BYTES: u64 = 134;

const SETTING: &str = "maintenance_io_concurrency";

const EXPLAIN: &str = "\
Fills a table far larger than its sample, restarts the server with none of its files in the kernel's cache, and times \
one ANALYZE. The arms are PostgreSQL 13, which reads block after block, 14 to 16, which ask for blocks ahead of time, 17, \
which reads them as a stream, and 18 with each io_method; at the quick scale 13, 15 and 16 are run at 10 and 50 only. The axis is maintenance_io_concurrency, the number of blocks that are asked for ahead.

The device's own counter, before and after, proves that the run was cold; what it cannot prove is reported beside the run. \
In a virtual machine the cache of the host stays out of reach, and on a fast local disk there is little to win: the \
wait for one block is what asking ahead saves. ANALYZE draws another sample each time, so runs of one cell differ.

The published scale is pgbench's accounts table at scale 1000 (100 million rows, 13 GB) with a statistics target of \
1000, which samples 300,000 blocks; the quick one is a fiftieth of the rows with a target of 30.

With --learn-from the table has the shape of yours.

Published: 13 took 19.6 to 21.6 s whatever the setting; 14 took 24.7, 29.8, 8.7, 5.8, 4.1, 3.4, 3.0 and 2.8 s at 0, 1, \
5, 10, 20, 50, 100 and 500.";

impl Experiment for AnalyzePrefetch {
    fn name(&self) -> &str {
        "analyze-prefetch"
    }

    fn question(&self) -> &str {
        "What does maintenance_io_concurrency buy for ANALYZE?"
    }

    fn explain(&self) -> &str {
        EXPLAIN
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let by_method = |method: &str| {
            Arm::new(
                &format!("18-{}", method.replace('_', "-")),
                &format!("PostgreSQL 18, io_method = {method}"),
            )
            .on_version("18")
            .with_setting("io_method", method)
        };
        let by_major = |(major, how): (&str, &str)| {
            Arm::new(major, &format!("PostgreSQL {major}, {how}")).on_version(major)
        };
        let before = [
            ("13", "block after block"),
            ("14", "asks ahead"),
            ("15", "asks ahead"),
            ("16", "asks ahead"),
            ("17", "as a stream"),
        ];
        let eighteen = ["sync", "worker", "io_uring"].map(by_method);
        let arms = before.into_iter().map(by_major).chain(eighteen).collect();
        let values: &[u32] = scale.pick(
            &[0, 10],
            &[0, 10, 50, 100],
            &[0, 1, 5, 10, 20, 50, 100, 500],
        );
        let axis = Axis::new(SETTING, "blocks asked for ahead", values);
        Matrix {
            arms,
            axes: vec![axis.sets(SETTING)],
            blocks: scale.pick(1, 5, 3),
        }
    }

    /// In minutes, the majors that ANALYZE as their neighbour does are asked at what is shipped and
    /// what is advised.
    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let at = point.get(SETTING).map_or("", String::as_str);
        let is_short = ["13", "15", "16"].contains(&arm.name.as_str());
        scale != Scale::Quick || !is_short || ["10", "50"].contains(&at)
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing("analyze_s", "time of ANALYZE, cold", "s", Better::Lower),
            Metric::timing("device_mb_s", "read by the disk", "MB/s", Better::Higher),
            Metric::exact("blocks_sampled", "blocks in the sample", "", Better::Lower),
            Metric::exact("table_blocks", "blocks of the table", "", Better::Lower),
        ]
    }

    fn needs(&self, _cell: &Cell, arm: &Arm) -> Vec<Need> {
        let method = |value: &String| Need::SettingValue {
            name: "io_method",
            value: value.clone(),
        };
        arm.settings
            .get("io_method")
            .map(method)
            .into_iter()
            .collect()
    }

    fn cost(&self, _cell: &Cell, scale: Scale) -> Cost {
        Cost::seconds(scale.pick(2.0, 2.5, 30.0))
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        // ANALYZE writes statistics, and they do not change the next run.
        Base::shared("accounts")
    }

    fn fill(&self, _base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let (columns, rows) = self.table(self.rows(scale));
        let asked = || Error::sql("filling the table");
        session
            .execute(&format!(
                "{SEED}; CREATE TABLE accounts (aid integer NOT NULL, {columns}) WITH (autovacuum_enabled = off); \
                 INSERT INTO accounts {rows}"
            ))
            .map_err(asked())?;
        // What the runs read must not be written to any more.
        session
            .execute("VACUUM (FREEZE) accounts")
            .map_err(asked())?;
        session.execute("CHECKPOINT").map_err(asked())
    }

    fn fill_cost(&self, _base: &str, scale: Scale) -> Cost {
        let bytes = self.rows(scale).saturating_mul(self.row_bytes());
        Cost::seconds(2.0 + bytes as f64 / 30e6).with_data(bytes)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let target = target(bench.scale());
        bench.set("autovacuum", "off");
        let cold = bench.cold()?;
        let mut session = bench.connect()?;
        let asked = || Error::sql("analysing the table");
        session
            .execute(&format!("SET default_statistics_target = {target}"))
            .map_err(asked())?;
        let start = Instant::now();
        session
            .execute("ANALYZE VERBOSE accounts")
            .map_err(asked())?;
        let seconds = start.elapsed().as_secs_f64();
        let read = cold.read_bytes();
        let said = session.take_messages();
        let (sampled, blocks) = said
            .iter()
            .find_map(|message| scanned(&message.message))
            .ok_or_else(|| {
                Error::Empty("ANALYZE did not say how many blocks it read".to_owned())
            })?;
        // Half of the sample: the kernel reads ahead what it likes, and some blocks are the
        // catalogs'.
        if let Some(doubt) = cold.doubt(sampled.saturating_mul(4_096)) {
            bench.overlap(doubt);
        }
        let mut measured = Measured::default()
            .with("analyze_s", seconds)
            .with("blocks_sampled", sampled as f64)
            .with("table_blocks", blocks as f64);
        if let Some(read) = read {
            measured = measured.with("device_mb_s", read as f64 / 1e6 / seconds.max(1e-9));
        }
        Ok(measured)
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        // 13 does not care.
        let arms = matrix.arms.iter().filter(|arm| arm.name != "13");
        arms.filter_map(|arm| raise(matrix, arm)).collect()
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let shape = Some(shape.renamed());
        Ok(Box::new(Self { shape }))
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.settings.get("io_method") {
            Some(method) => format!(
                "set io_method = {method} (needs a restart) and maintenance_io_concurrency where the curve is flat"
            ),
            None => format!(
                "PostgreSQL {}: ALTER SYSTEM SET maintenance_io_concurrency to the value where the curve is flat",
                arm.name
            ),
        }
    }
}

/// From what PostgreSQL ships to what the article advises; where the plan has neither, from its
/// first value to its last.
fn raise(matrix: &Matrix, arm: &Arm) -> Option<Comparison> {
    let axis = matrix.axes.iter().find(|axis| axis.name == SETTING)?;
    let (first, last) = (axis.values.first()?, axis.values.last()?);
    let has = |value: &str| axis.values.iter().any(|other| other == value);
    let [from, to] = if has("10") && has("50") {
        ["10", "50"]
    } else {
        [first.as_str(), last.as_str()]
    };
    let [baseline, candidate] = along_an_axis(matrix, &arm.name, SETTING, [from, to])?;
    Some(Comparison {
        metric: "analyze_s".to_owned(),
        baseline,
        candidate,
        action: format!("raise {SETTING} from {from} to {to}"),
        voice: CardTone::Choice,
        subject: format!("ANALYZE on {}", arm.name),
        conditions: " on this disk, cold".to_owned(),
        apply: vec![
            format!("ALTER SYSTEM SET {SETTING} = {to};"),
            "SELECT pg_reload_conf();".to_owned(),
        ],
    })
}

impl AnalyzePrefetch {
    /// As many as make a table of the usual size.
    fn rows(&self, scale: Scale) -> u64 {
        let usual: u64 = scale.pick(100_000, 2_000_000, 100_000_000);
        (usual * ROW_BYTES / self.row_bytes()).max(1_000)
    }

    fn row_bytes(&self) -> u64 {
        let shape = self.shape.as_ref();
        shape.map_or(ROW_BYTES, TableShape::row_bytes)
    }

    /// The columns behind the number, and a query for so many rows.
    fn table(&self, rows: u64) -> (String, String) {
        let Some(shape) = &self.shape else {
            let columns = "bid integer, abalance integer, filler character(84)".to_owned();
            let rows = format!("SELECT i, i / 100000, 0, '' FROM generate_series(1, {rows}) AS i");
            return (columns, rows);
        };
        let parts = Parts::of(shape);
        (
            parts.declared.join(", "),
            parts.rows(&["i".to_owned()], [1, rows]),
        )
    }
}

/// The sample has 300 rows for each of these, and no block is read twice.
fn target(scale: Scale) -> u32 {
    scale.pick(1, 30, 1_000)
}

/// Blocks read and blocks there, out of `"accounts": scanned 600 of 3572 pages, containing …`.
fn scanned(message: &str) -> Option<(u64, u64)> {
    let (_, rest) = message.split_once(": scanned ")?;
    let mut words = rest.split_whitespace();
    let sampled = words.next()?.parse().ok()?;
    let blocks = words.nth(1)?.parse().ok()?;
    Some((sampled, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_read_off_the_server_s_words() {
        let said =
            "\"accounts\": scanned 600 of 3572 pages, containing 36600 live rows and 0 dead rows";
        assert_eq!(scanned(said), Some((600, 3_572)));
        assert_eq!(scanned("analyzing \"public.accounts\""), None);
    }
}
