//! What do temporary tables do to the catalogs?
//!
//! A table is rows in `pg_class`, `pg_attribute`, `pg_attrdef`, `pg_type`, `pg_depend` and
//! `pg_index`, and so are its TOAST table, its indexes and its sequence. Dropped, they are dead
//! rows that VACUUM must find; a held snapshot keeps it from that. When the end of a catalog has
//! become empty, VACUUM cuts it off under an ACCESS EXCLUSIVE lock (`lazy_truncate_heap` in
//! `src/backend/access/heap/vacuumlazy.c`), and whoever must read the catalog waits.

mod learned_rate;
mod stall;
mod workload;

use std::time::{Duration, Instant};

use pgclinic_servers::Session;

use crate::asking::{number, wal_bytes};
use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::load::script::statements;
use crate::need::Need;
use crate::plan::LeftOut;
use crate::table_profile::TableShape;

use learned_rate::{LEARNED, LearnedRate};

/// Rows of `pg_attribute` that an 8 kB page of the published cluster held.
const PUBLISHED_ROWS_PAGE: f64 = 23.0;

/// The value of the axis rate at which cycles follow each other at once, with autovacuum off.
const AT_ONCE: &str = "max";

/// A run at the learned rate lasts about as long, if cycles come rarely: a minute.
const LEARNED_S: f64 = 60.0;

/// The value of the axis workload that bloats the catalogs before the run, by thousands of tables.
const BULK: &str = "bulk";

/// The axis of what is searched for the pages that are cut off, and what PostgreSQL ships.
const BUFFERS: &str = "shared_buffers";
const BUFFERS_SHIPPED: &str = "128MB";

/// The baseline, and the arm that asks for nothing but the stall.
const CREATE_DROP: &str = "create-drop";
const NO_TRUNCATE: &str = "no-truncate";

/// The experiment that makes and drops tables and measures the catalogs.
#[derive(Debug, Clone)]
pub struct CatalogChurn {
    /// A person's own cycle.
    own: Option<String>,
    /// How many cycles there are when.
    traffic: Vec<(String, u64)>,
    /// How fast relations are created in the person's cluster.
    learned: Option<LearnedRate>,
}

/// On the tables of the articles.
pub static CATALOG_CHURN: CatalogChurn = CatalogChurn {
    own: None,
    traffic: Vec::new(),
    learned: None,
};

impl Experiment for CatalogChurn {
    fn name(&self) -> &str {
        "catalog-churn"
    }

    fn question(&self) -> &str {
        "What do short-lived tables do to the system catalogs?"
    }

    fn explain(&self) -> &str {
        "A cycle creates short-lived tables with their indexes, puts a row into each, and drops them: one reporting table of \
         31 columns and four indexes, or the five tables that a web shop makes at each login. The arm reuse creates them once \
         as temporary tables ON COMMIT DELETE ROWS and only fills them in each cycle. Counted are the bytes that all catalogs \
         grow by for 1,000 cycles, the rows that a cycle writes into pg_attribute, pg_attrdef and pg_class, and the WAL. A \
         snapshot that another session holds meanwhile keeps dead rows from being pruned. At the rate max cycles follow each \
         other at once and autovacuum is off; at a number of cycles (or logins) a second autovacuum works meanwhile, looking \
         every second, so that what is left is what it cannot keep up with.\n\n\
         Then autovacuum is let loose on the bloated catalogs, while a probe opens a session and reads a small table, again and \
         again. The longest stall of the probe is the incident of the article: a SELECT that waits because VACUUM truncates the end \
         off pg_attribute. The workload bulk is made for it: thousands of tables of 100 columns were created and dropped before \
         the run, so that all of the end of pg_attribute is empty. There, the arm no-truncate has vacuum_truncate off on the \
         catalogs (18 has it as a setting of the server). cut_bytes tells how much was truncated pg_attribute, cut_stall_ms the \
         longest of the probes in which it became shorter. The stall grows with the size of what is truncated and with \
         shared_buffers, all of which are searched for its pages; that axis is varied at the workload bulk only.\n\n\
         The arm reuse is run at the rate max without a held snapshot, where it differs from the baseline.\n\n\
         Published: a reporting table writes 62 rows into pg_attribute, 27 into pg_attrdef and 9 into pg_class. For the shop \
         173, 3 and 32 are published, but the article's own addends give 230 rows in pg_attribute, and real servers 232. \
         --ddl FILE runs statements of your own as the cycle; its rows are counted where there are most of them. --traffic \
         FILE (lines of a label, a comma and a number of cycles, as for `measure catalog-cost`) projects the growth over \
         your days instead of the article's. With --learn-from the axis rate also has the value learned: so many cycles a second \
         that relations are created as fast as the WAL of your cluster tells, whatever table is named."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let rates: &[&str] = scale.pick(&[AT_ONCE], &[AT_ONCE, "50"], &[AT_ONCE, "10", "100"]);
        let mut rates = rates.to_vec();
        if self
            .workloads()
            .iter()
            .any(|(_, relations)| self.fits(*relations))
        {
            rates.push(LEARNED);
        }
        let mut arms = vec![
            Arm::new(CREATE_DROP, "created and dropped in each cycle"),
            Arm::new(NO_TRUNCATE, "the same, catalogs with vacuum_truncate off"),
        ];
        let workloads: &[&str] = match self.own {
            Some(_) => &["own", BULK],
            None => {
                arms.push(Arm::new(
                    "reuse",
                    "temporary tables kept, emptied at commit",
                ));
                &["reporting", "shop", BULK]
            }
        };
        let buffers: &[&str] = scale.pick(
            &[BUFFERS_SHIPPED],
            &[BUFFERS_SHIPPED, "2GB"],
            &[BUFFERS_SHIPPED, "2GB", "8GB"],
        );
        Matrix {
            arms,
            axes: vec![
                Axis::new("workload", "", workloads),
                Axis::new("snapshot", "", &["none", "held"]),
                Axis::new("rate", "cycles a second", &rates),
                Axis::new(BUFFERS, "", buffers).sets(BUFFERS),
            ],
            blocks: scale.pick(1, 2, 3),
        }
    }

    /// Of the other arms one is about growth, the other about the stall, and so are the buffers.
    fn asks(&self, arm: &Arm, point: &Point, _scale: Scale) -> bool {
        let at = |axis: &str| point.get(axis).map_or("", String::as_str);
        let is_plain = at("snapshot") == "none" && at("rate") == AT_ONCE;
        match (at("workload"), arm.name.as_str()) {
            (BULK, "reuse") => false,
            (BULK, _) => is_plain,
            (_, NO_TRUNCATE) => false,
            (workload, CREATE_DROP) => {
                let fits = at("rate") != LEARNED || self.fits(self.relations(workload));
                fits && at(BUFFERS) == BUFFERS_SHIPPED
            }
            _ => is_plain && at(BUFFERS) == BUFFERS_SHIPPED,
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let exact =
            |name: &str, words: &str, unit: &str| Metric::exact(name, words, unit, Better::Lower);
        vec![
            exact(
                "catalog_bytes",
                "growth of all catalogs for 1,000 cycles",
                "bytes",
            ),
            exact("attribute_rows", "rows in pg_attribute for each cycle", ""),
            exact("attrdef_rows", "rows in pg_attrdef for each cycle", ""),
            exact("class_rows", "rows in pg_class for each cycle", ""),
            exact("wal_bytes", "WAL for 1,000 cycles", "bytes"),
            exact("kept_bytes", "pg_attribute after autovacuum", "bytes"),
            Metric::exact(
                "cut_bytes",
                "truncated pg_attribute by autovacuum",
                "bytes",
                Better::Higher,
            ),
            Metric::timing(
                "stall_ms",
                "longest stall of a probe while autovacuum cleans up",
                "ms",
                Better::Lower,
            ),
            Metric::timing(
                "cut_stall_ms",
                "longest probe in which pg_attribute became shorter",
                "ms",
                Better::Lower,
            ),
            Metric::timing("cycles_s", "cycles a second", "1/s", Better::Higher),
        ]
    }

    fn needs(&self, _cell: &Cell, _arm: &Arm) -> Vec<Need> {
        Vec::new()
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let memory = (256 << 20) + megabytes(cell.at(BUFFERS)).saturating_mul(1 << 20);
        if cell.at("workload") == BULK {
            let bytes = stall::bulk_bytes(scale);
            let cost = Cost::seconds(5.0 + bytes as f64 / 60e6);
            return cost.with_data(bytes).with_memory(memory);
        }
        let cycle_s = match (cell.arm.as_str(), cell.at("workload")) {
            ("reuse", _) => 0.004,
            (_, "shop") => 0.06,
            _ => 0.015,
        };
        let rate = self.rate(cell, self.relations(cell.at("workload")));
        let cycles = cycles_at(cell, scale, rate);
        let paced_s = rate.map_or(0.0, |rate| 1.0 / rate);
        Cost::seconds(6.0 + cycles as f64 * paced_s.max(cycle_s))
            .with_data(cycles * 300_000)
            .with_memory(memory)
    }

    fn base(&self, cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        match cell.at("workload") {
            BULK => Base::copied(BULK),
            _ => Base::empty(),
        }
    }

    fn fill(&self, base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        match base {
            BULK => stall::bulk(scale, session),
            _ => Ok(()),
        }
    }

    fn fill_cost(&self, base: &str, scale: Scale) -> Cost {
        match base {
            BULK => {
                let bytes = stall::bulk_bytes(scale);
                Cost::seconds(2.0 + bytes as f64 / 10e6).with_data(bytes)
            }
            _ => Cost::seconds(2.0),
        }
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        match bench.cell().at("rate") {
            AT_ONCE => bench.set("autovacuum", "off"),
            _ => bench.set("autovacuum_naptime", "1s"),
        }
        bench.set("synchronous_commit", "off");
        let mut session = bench.connect()?;
        if bench.arm().name == NO_TRUNCATE {
            stall::forbid_cutting(&mut session)?;
        }
        let measured = match bench.cell().at("workload") {
            BULK => stall::grown_by_bulk(&mut session)?,
            _ => self.cycles(bench, &mut session)?,
        };
        drop(session);
        stall::probe(bench, measured)
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        // Keeping the tables is about growth, and vacuum_truncate about the stall.
        let cards = on_metrics(matrix, self, &["catalog_bytes", "stall_ms"]);
        let fits =
            |card: &Comparison| (card.candidate.arm == NO_TRUNCATE) == (card.metric == "stall_ms");
        let worded = |card: Comparison| match card.metric.as_str() {
            "stall_ms" => about_the_stall(card, matrix),
            _ => about_growth(card),
        };
        cards.into_iter().filter(fits).filter_map(worded).collect()
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "reuse" => "CREATE TEMP TABLE … ON COMMIT DELETE ROWS once a session, and fill it again instead of creating it again",
            "no-truncate" => "vacuum_truncate = off (from 18), before: SET allow_system_table_mods = on; ALTER TABLE pg_catalog.pg_attribute SET (vacuum_truncate = off)",
            _ => "keep creating and dropping, and watch the size of pg_attribute",
        }
        .to_owned()
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let grown = |workload: &str| {
            let fits = |result: &&RunResult| {
                let cell = &result.cell;
                cell.arm == CREATE_DROP
                    && cell.at("workload") == workload
                    && cell.at("rate") == AT_ONCE
                    && cell.at("snapshot") == "none"
            };
            Grown::of(results.iter().find(fits)?)
        };
        let mut remarks = incidents(results);
        let learned = self.learned.as_ref();
        remarks.extend(learned.and_then(|learned| learned.words(&self.workloads())));
        if self.traffic.is_empty() {
            remarks.extend(grown("shop").map(|grown| projection(grown.attribute_rows)));
            remarks.extend(
                grown("own").map(|grown| grown.over("your statements", &article_traffic())),
            );
            return remarks;
        }
        for (workload, words) in [
            ("reporting", "the reporting table"),
            ("shop", "the shop's login"),
            ("own", "your statements"),
        ] {
            remarks.extend(grown(workload).map(|grown| grown.over(words, &self.traffic)));
        }
        remarks
    }

    fn with_ddl(&self, sql: &str) -> Result<Box<dyn Experiment>> {
        if statements(sql).is_empty() {
            return Err(Error::Refused(
                "the file of --ddl holds no statement".to_owned(),
            ));
        }
        Ok(Box::new(Self {
            own: Some(sql.to_owned()),
            ..self.clone()
        }))
    }

    fn with_traffic(&self, traffic: &[(String, u64)]) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Self {
            traffic: traffic.to_vec(),
            ..self.clone()
        }))
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        Ok(Box::new(Self {
            learned: Some(LearnedRate::of(shape)),
            ..self.clone()
        }))
    }

    fn brought(&self) -> Result<Vec<LeftOut>> {
        let learned = self.learned.as_ref();
        let left_out = learned.map(|learned| learned.left_out(&self.workloads()));
        Ok(left_out.unwrap_or_default())
    }
}

impl CatalogChurn {
    /// The workloads that cycles are made of, with the relations that each creates in a cycle.
    fn workloads(&self) -> Vec<(&'static str, f64)> {
        let names: &[&'static str] = match self.own {
            Some(_) => &["own"],
            None => &["reporting", "shop"],
        };
        let with = |name: &&'static str| (*name, self.relations(name));
        names.iter().map(with).collect()
    }

    fn relations(&self, workload: &str) -> f64 {
        workload::relations(workload, self.own.as_deref())
    }

    /// The learned rate can be run with cycles that create so many relations.
    fn fits(&self, relations: f64) -> bool {
        let learned = self.learned.as_ref();
        learned.is_some_and(|learned| learned.fits(relations))
    }

    /// Cycles a second, where one creates so many relations; `None` for as many as go.
    fn rate(&self, cell: &Cell, relations: f64) -> Option<f64> {
        match cell.at("rate") {
            LEARNED => self.learned.as_ref()?.cycles(relations),
            _ => cell.number_at("rate").filter(|rate| *rate > 0.0),
        }
    }

    /// The cycles of the workload, a snapshot being held meanwhile where the cell says so.
    fn cycles(&self, bench: &mut Bench<'_>, session: &mut Session) -> Result<Measured> {
        stall::make_probe(session)?;
        let held = match bench.cell().at("snapshot") {
            "held" => Some(hold_snapshot(bench)?),
            _ => None,
        };
        let workload = match &self.own {
            Some(sql) => workload::own(sql),
            None => workload::named(bench.cell().at("workload")),
        };
        let life = match bench.arm().name.as_str() {
            "reuse" => Life::Kept,
            _ => Life::Dropped,
        };
        let measured = self.churn(bench, session, &workload, life)?;
        drop(held);
        let metric = |name: &str| measured.metrics.get(name).copied().unwrap_or(0.0);
        let (reached, relations) = (metric("cycles_s"), metric("class_rows"));
        let learned = self.learned.as_ref();
        if let Some(learned) = learned.filter(|_| bench.cell().at("rate") == LEARNED)
            && let Some(doubt) = learned.doubt(relations)
        {
            bench.overlap(doubt);
        }
        let rate = self.rate(bench.cell(), relations);
        if rate.is_some_and(|rate| reached < 0.9 * rate) {
            bench.overlap(format!(
                "the rate could not be held: {reached:.1} cycles a second"
            ));
        }
        Ok(measured)
    }

    /// The cycles with what they leave in the catalogs.
    fn churn(
        &self,
        bench: &Bench<'_>,
        session: &mut Session,
        workload: &workload::Workload,
        life: Life,
    ) -> Result<Measured> {
        let failed = || Error::sql("running a cycle");
        // The first cycle counts the rows, and is not among those that are measured.
        let before = rows(session)?;
        let mut most = before;
        for statement in &workload.create {
            session.execute(statement).map_err(failed())?;
            for (most, now) in most.iter_mut().zip(rows(session)?) {
                *most = most.max(now);
            }
        }
        if life == Life::Dropped {
            session.execute(&workload.fill).map_err(failed())?;
            session.execute(&workload.drop).map_err(failed())?;
        }
        let (bytes, wal) = (number(session, stall::CATALOG_BYTES)?, wal_bytes(session)?);
        let each = |at: usize| match life {
            Life::Kept => 0.0,
            Life::Dropped => most.get(at).unwrap_or(&0.0) - before.get(at).unwrap_or(&0.0),
        };
        let rate = self.rate(bench.cell(), each(2));
        let cycles = cycles_at(bench.cell(), bench.scale(), rate);
        let start = Instant::now();
        for cycle in 0..cycles {
            if let Some(rate) = rate {
                let due = Duration::from_secs_f64(cycle as f64 / rate);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
            match life {
                Life::Dropped => {
                    for statement in &workload.create {
                        session.execute(statement).map_err(failed())?;
                    }
                    session.execute(&workload.fill).map_err(failed())?;
                    session.execute(&workload.drop).map_err(failed())?;
                }
                Life::Kept => session.execute(&workload.fill).map_err(failed())?,
            }
            bench.check_interrupted()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let thousands = cycles as f64 / 1_000.0;
        Ok(Measured::default()
            .with("attribute_rows", each(0))
            .with("attrdef_rows", each(1))
            .with("class_rows", each(2))
            .with(
                "catalog_bytes",
                (number(session, stall::CATALOG_BYTES)? - bytes) / thousands,
            )
            .with("wal_bytes", (wal_bytes(session)? - wal) / thousands)
            .with("cycles_s", cycles as f64 / seconds.max(1e-9)))
    }
}

/// A card on the stall, where catalogs were bloated for it and shared_buffers are largest; `None`
/// where they were not.
fn about_the_stall(mut card: Comparison, matrix: &Matrix) -> Option<Comparison> {
    let values = |name: &str| {
        let axis = matrix.axes.iter().find(|axis| axis.name == name);
        axis.map_or(&[] as &[String], |axis| axis.values.as_slice())
    };
    let buffers = values(BUFFERS).last()?.clone();
    values("workload").iter().find(|value| *value == BULK)?;
    card.at(&[("workload", BULK), (BUFFERS, &buffers)], matrix);
    card.action = "set vacuum_truncate off for the catalogs".to_owned();
    card.subject = "the longest SELECT while autovacuum cleans up bloated catalogs".to_owned();
    card.conditions = format!(" (shared_buffers {buffers})");
    Some(card)
}

/// A card on growth, which no cycle makes where all of it was made before.
fn about_growth(mut card: Comparison) -> Option<Comparison> {
    if card.candidate.point.get("workload")? == BULK {
        return None;
    }
    card.action = "keep temporary tables instead of creating and dropping them".to_owned();
    Some(card)
}

/// The stall with and without cutting, for each size of shared_buffers.
fn incidents(results: &[RunResult]) -> Vec<String> {
    let bulk = || {
        let done = results.iter().filter(|result| result.is_done());
        done.filter(|result| result.cell.at("workload") == BULK)
    };
    let mut sizes: Vec<&str> = bulk().map(|result| result.cell.at(BUFFERS)).collect();
    sizes.sort_unstable_by_key(|size| megabytes(size));
    sizes.dedup();
    let of = |arm: &str, size: &str| -> Vec<&RunResult> {
        let fits = |result: &&RunResult| result.cell.arm == arm && result.cell.at(BUFFERS) == size;
        bulk().filter(fits).collect()
    };
    let told = |size: &str| stall::told(size, &of(CREATE_DROP, size), &of(NO_TRUNCATE, size));
    sizes.into_iter().filter_map(told).collect()
}

/// Of `128MB` and `2GB`.
fn megabytes(size: &str) -> u64 {
    let (number, times) = match size.strip_suffix("GB") {
        Some(number) => (number, 1_024),
        None => (size.trim_end_matches("MB"), 1),
    };
    number.parse::<u64>().unwrap_or(0).saturating_mul(times)
}

/// What a cycle left in the catalogs of one run.
struct Grown {
    attribute_rows: f64,
    /// Of all catalogs, for 1,000 cycles.
    catalog_bytes: f64,
}

impl Grown {
    fn of(result: &RunResult) -> Option<Self> {
        let metric = |name: &str| result.metrics.get(name).copied();
        Some(Self {
            attribute_rows: metric("attribute_rows")?,
            catalog_bytes: metric("catalog_bytes")?,
        })
    }

    /// Projected over a table of traffic, if nobody cleans up.
    fn over(&self, what: &str, traffic: &[(String, u64)]) -> String {
        let in_megabytes = |bytes: f64| bytes / 1_048_576.0;
        let line = |(label, cycles): &(String, u64)| {
            let cycles = *cycles as f64;
            let attributes = cycles * self.attribute_rows / PUBLISHED_ROWS_PAGE * 8192.0;
            format!(
                "{label} ({cycles:.0}): pg_attribute {:.0} MB, all catalogs {:.0} MB",
                in_megabytes(attributes),
                in_megabytes(cycles / 1_000.0 * self.catalog_bytes)
            )
        };
        let lines: Vec<String> = traffic.iter().map(line).collect();
        format!(
            "projected for {what}, {:.0} rows of pg_attribute a cycle at {PUBLISHED_ROWS_PAGE:.0} rows a page, and all catalogs as they grew here: {}",
            self.attribute_rows,
            lines.join("; ")
        )
    }
}

/// Cycles of the article's days.
fn article_traffic() -> Vec<(String, u64)> {
    let days = [1_000, 20_000, 60_000];
    days.map(|cycles| ("cycles".to_owned(), cycles)).to_vec()
}

/// What a day of the shop leaves in `pg_attribute` when nobody cleans up, with the published
/// filling of pages.
fn projection(rows_login: f64) -> String {
    let grown = |logins: f64| logins * rows_login / PUBLISHED_ROWS_PAGE * 8192.0 / 1_048_576.0;
    format!(
        "projected to the article's traffic at {rows_login:.0} rows a login and {PUBLISHED_ROWS_PAGE:.0} rows a page: pg_attribute grows by \
         {:.0} MB for 1,000 logins, {:.0} MB for 20,000 and {:.0} MB for 60,000 (published, at 173 rows: 58.77, 1,175.27 and 3,525.82 MB)",
        grown(1_000.0),
        grown(20_000.0),
        grown(60_000.0)
    )
}

fn cycles(scale: Scale) -> u64 {
    scale.pick(25, 200, 1_000)
}

/// Cycles of a run; fewer where the learned rate is low.
fn cycles_at(cell: &Cell, scale: Scale, rate: Option<f64>) -> u64 {
    let all = cycles(scale);
    let learned = rate.filter(|_| cell.at("rate") == LEARNED);
    learned.map_or(all, |rate| {
        let enough = pgclinic_model::whole((rate * LEARNED_S).ceil());
        all.min(enough.max(cycles(Scale::Smallest)))
    })
}

/// How long the tables of a cycle live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Dropped,
    Kept,
}

fn hold_snapshot(bench: &mut Bench<'_>) -> Result<Session> {
    let mut session = bench.connect()?;
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .map_err(Error::sql("holding a snapshot"))?;
    Ok(session)
}

/// Rows of the three catalogs.
fn rows(session: &mut Session) -> Result<[f64; 3]> {
    let mut count = |catalog: &str| number(session, &format!("SELECT count(*) FROM {catalog}"));
    Ok([
        count("pg_attribute")?,
        count("pg_attrdef")?,
        count("pg_class")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_profile::{Rates, RowCounts, Writing};

    #[test]
    fn growth_and_stall_are_decided_where_they_are_made() {
        let matrix = CATALOG_CHURN.matrix(Scale::Quick);
        let cards = CATALOG_CHURN.comparisons(&matrix);
        let [growth, stall] = cards.as_slice() else {
            panic!("two cards: {cards:?}")
        };
        assert_eq!(growth.candidate.arm, "reuse");
        assert_eq!(growth.candidate.point["workload"], "reporting");
        assert_eq!(stall.candidate.arm, NO_TRUNCATE);
        assert_eq!(stall.candidate.point["workload"], BULK);
        assert_eq!(stall.candidate.point[BUFFERS], "2GB");
        let only = |workload: &str| {
            let mut matrix = matrix.clone();
            matrix.axes[0].values = vec![workload.to_owned()];
            let cards = CATALOG_CHURN.comparisons(&matrix).into_iter();
            cards.map(|card| card.metric).collect::<Vec<_>>()
        };
        assert_eq!(only("shop"), ["catalog_bytes"]);
        assert_eq!(only(BULK), ["stall_ms"]);
        assert_eq!((megabytes("128MB"), megabytes("2GB")), (128, 2_048));
    }

    /// On a cluster that creates so many relations within ten seconds.
    fn learned(created: u64) -> Box<dyn Experiment> {
        let micros = 10_000_000;
        let classes = RowCounts {
            micros,
            inserted: created,
            ..RowCounts::default()
        };
        let rates = Rates {
            micros,
            commits: 1,
            classes,
            ..Rates::default()
        };
        let shape = TableShape {
            schema: "pgclinic.lab-shape/1".to_owned(),
            table: "pg_catalog.pg_class".to_owned(),
            blocks: 1,
            blocks_seen: 1,
            blocks_unreadable: 0,
            rows_seen: 1,
            rows: 1,
            columns: Vec::new(),
            writing: Some(Writing::Counted(rates)),
        };
        CATALOG_CHURN.with_shape(&shape).expect("it has a place")
    }

    /// The workloads that are run at the learned rate, and what is told of the others.
    fn at_the_learned_rate(experiment: &dyn Experiment) -> (Vec<String>, Vec<String>) {
        let plan = crate::Plan::make(experiment, None, &crate::PlanOptions::default());
        let plan = plan.expect("a plan");
        let cells = plan.cells.iter().filter(|cell| cell.at("rate") == LEARNED);
        let mut run: Vec<String> = cells.map(|cell| cell.at("workload").to_owned()).collect();
        run.sort_unstable();
        run.dedup();
        let told = plan.left_out.into_iter().map(|left| left.what);
        (run, told.filter(|what| what.contains(LEARNED)).collect())
    }

    #[test]
    fn a_learned_rate_is_run_with_the_workloads_that_can_have_it() {
        let nothing: [&str; 0] = [];
        let (run, told) = at_the_learned_rate(learned(180).as_ref());
        assert_eq!(run, ["reporting", "shop"]);
        assert_eq!(told, nothing);
        let (run, told) = at_the_learned_rate(learned(30).as_ref());
        assert_eq!(run, ["reporting"]);
        assert_eq!(told, ["rate=learned at workload=shop"]);
        let (run, told) = at_the_learned_rate(learned(0).as_ref());
        assert_eq!(run, nothing);
        assert_eq!(told, ["rate=learned"]);
        let own = learned(180).with_ddl("CREATE TEMP TABLE one (a int); DROP TABLE one");
        let (run, _) = at_the_learned_rate(own.expect("it has a place").as_ref());
        assert_eq!(run, ["own"]);
        let (run, told) = at_the_learned_rate(&CATALOG_CHURN);
        assert_eq!((run, told), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_run_at_a_low_learned_rate_has_fewer_cycles() {
        let cell = |rate: &str| Cell {
            id: "1".to_owned(),
            arm: CREATE_DROP.to_owned(),
            point: [("rate".to_owned(), rate.to_owned())].into(),
            block: 1,
            repeat: 0,
            is_control: false,
        };
        let at = |value: &str, rate| cycles_at(&cell(value), Scale::Quick, Some(rate));
        assert_eq!((at(LEARNED, 2.0), at(LEARNED, 0.25)), (120, 25));
        assert_eq!((at(LEARNED, 150.0), at("2", 2.0)), (200, 200));
    }

    #[test]
    fn a_table_of_traffic_is_projected_line_by_line() {
        let grown = Grown {
            attribute_rows: 173.0,
            catalog_bytes: 104_857_600.0,
        };
        let traffic = [
            ("a day".to_owned(), 1_000),
            ("Black Friday".to_owned(), 60_000),
        ];
        let words = grown.over("the shop's login", &traffic);
        assert!(
            words.contains("a day (1000): pg_attribute 59 MB, all catalogs 100 MB"),
            "{words}"
        );
        assert!(
            words.contains("Black Friday (60000): pg_attribute 3526 MB, all catalogs 6000 MB"),
            "{words}"
        );
    }

    #[test]
    fn the_article_s_own_numbers_come_out_of_its_own_rows() {
        let words = projection(173.0);
        assert!(
            words.contains("by 59 MB for 1,000 logins, 1175 MB for 20,000 and 3526 MB for 60,000"),
            "{words}"
        );
    }
}
