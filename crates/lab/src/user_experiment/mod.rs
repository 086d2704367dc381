//! A person's own experiment: a TOML file with set-up SQL, a load or a statement, arms, axes and
//! metrics.
//!
//! ```text
//! file.rs      what the file may say, and what is refused before anything is started
//! cold.rs      whether what a run read came from the disk
//! names.rs     {axis} in SQL
//! differing.rs which keys of two files ask something else
//! template.rs  what `lab new` writes
//! ```
//!
//! Once read it is an experiment like any other. Its text is kept in `plan.json`, so that a folder
//! can be resumed without the file.

mod cold;
mod differing;
mod file;
mod names;
mod template;

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::Session;

use crate::asking::{number, timed, wal_bytes};
use crate::bench::Bench;
use crate::cell::{Arm, Better, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::external_server::ByUrl;
use crate::load::script::statements;
use crate::load::{Load, Pace, Protocol, Script, SyntaxError, Weighted};
use crate::plan::LeftOut;
use crate::table_profile::{self, TableShape, told};

use cold::ColdRead;
use file::{File, LoadPart, Rate};
use names::{fill_in, named_in};

pub(crate) use differing::differing;
pub use template::TEMPLATE;

/// The table of a learned shape; [setup] and what follows may use it.
const LEARNED: &str = "learned";

/// Rows that it has at most.
const LEARNED_ROWS: u64 = 100_000;

/// Separates the parts of a base's name; no name and no value holds it.
const APART: char = '\u{1f}';

/// An experiment out of a file.
#[derive(Debug, Clone)]
pub struct OwnExperiment {
    file: File,
    matrix: Matrix,
    metrics: Vec<Metric>,
    shape: Option<TableShape>,
    /// The line of the file in which a rate stands.
    rate_line: Option<usize>,
    /// Rounds a second, where the file leaves them to what is learned.
    learned_rate: Option<f64>,
}

impl OwnExperiment {
    /// Reads the text of a file. What is wrong is said with its line.
    pub fn parse(text: &str) -> Result<Self> {
        let file = file::read(text)?;
        let matrix = file.matrix();
        let metrics = file.metrics();
        let own = Self {
            file,
            matrix,
            metrics,
            shape: None,
            rate_line: file::line_of_rate(text),
            learned_rate: None,
        };
        own.check_scripts()?;
        Ok(own)
    }

    /// Scripts and numbers are tried at every point, so that no run fails for a slip in the file.
    fn check_scripts(&self) -> Result<()> {
        let Some(load) = &self.file.load else {
            return Ok(());
        };
        let arms: Vec<Vec<(&str, u32)>> = self
            .matrix
            .arms
            .iter()
            .map(|arm| self.file.scripts(&arm.name))
            .collect();
        let check = |point: &Point| {
            let mut each = arms.iter();
            each.try_for_each(|scripts| make_load(load, scripts, point, 1).map(|_| ()))
        };
        let first = |axis: &crate::cell::Axis| {
            (
                axis.name.clone(),
                axis.values.first().cloned().unwrap_or_default(),
            )
        };
        let base: Point = self.matrix.axes.iter().map(first).collect();
        for axis in &self.matrix.axes {
            for value in &axis.values {
                let mut point = base.clone();
                point.insert(axis.name.clone(), value.clone());
                check(&point)?;
            }
        }
        check(&base)
    }

    fn own_sql(&self, arm: &str) -> &str {
        let own = self.file.arm.iter().find(|own| own.name == arm);
        own.map_or("", |own| own.sql.as_str())
    }

    /// The statement of an own metric.
    fn metric_sql(&self) -> impl Iterator<Item = (&str, &str)> {
        let with_sql = |metric: &'_ file::MetricPart| metric.sql.is_some();
        let metrics = self
            .file
            .metric
            .iter()
            .filter(move |metric| with_sql(metric));
        metrics.map(|metric| {
            (
                metric.name.as_str(),
                metric.sql.as_deref().unwrap_or_default(),
            )
        })
    }
}

impl Experiment for OwnExperiment {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn question(&self) -> &str {
        &self.file.question
    }

    fn explain(&self) -> &str {
        &self.file.explain
    }

    fn matrix(&self, _scale: Scale) -> Matrix {
        self.matrix.clone()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.metrics.clone()
    }

    fn cost(&self, cell: &Cell, _scale: Scale) -> Cost {
        let cost = &self.file.cost;
        let load = self.file.load.as_ref();
        let load = load.and_then(|load| {
            make_load(load, &self.file.scripts(&cell.arm), &cell.point, 1)
                .ok()
                .map(|made| (load.seconds, made.clients))
        });
        let (seconds, clients) = load.unwrap_or((0.0, 1));
        Cost::seconds(cost.run_seconds + seconds)
            .with_data(cost.disk_bytes())
            .with_connections(clients + 4)
    }

    fn base(&self, cell: &Cell, arm: &Arm, _scale: Scale) -> Base {
        let sql = [self.file.setup.sql.as_str(), self.own_sql(&arm.name)];
        let used = |axis: &&String| sql.iter().any(|sql| named_in(sql, axis));
        let values = cell.point.iter().filter(|(axis, _)| used(axis));
        let mut name = arm.name.clone();
        for (axis, value) in values {
            name.push_str(&format!("{APART}{axis}={value}"));
        }
        let base = if self.file.setup.shared {
            Base::shared(&name)
        } else {
            Base::copied(&name)
        };
        base.under(&arm.settings)
    }

    fn fill(&self, base: &str, _scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        if let Some(shape) = &self.shape {
            for statement in table_profile::statements(shape, LEARNED, LEARNED_ROWS) {
                let made = session.execute(&statement);
                made.map_err(Error::sql("making a table of the learned shape"))?;
            }
        }
        let mut parts = base.split(APART);
        let arm = parts.next().unwrap_or_default();
        let pair = |part: &str| {
            part.split_once('=')
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
        };
        let point: Point = parts.filter_map(pair).collect();
        for (what, sql) in [
            ("[setup] sql", self.file.setup.sql.as_str()),
            ("sql of the arm", self.own_sql(arm)),
        ] {
            // VACUUM and its like stand alone.
            for statement in statements(&fill_in(sql, &point)) {
                session.execute(&statement).map_err(Error::sql(what))?;
            }
        }
        Ok(())
    }

    fn fill_cost(&self, _base: &str, _scale: Scale) -> Cost {
        Cost::seconds(self.file.cost.setup_seconds).with_data(self.file.cost.disk_bytes())
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let (point, arm) = (bench.cell().point.clone(), bench.arm().name.clone());
        self.prepare(bench, &point)?;
        if !self.file.setup.warm.is_empty() {
            let relations: Vec<&str> = self.file.setup.warm.iter().map(String::as_str).collect();
            bench.warm(&relations)?;
        }
        if self.file.setup.cold {
            bench.cold()?;
        }
        let mut session = bench.connect()?;
        if self.file.setup.checkpoint {
            let made = session.execute("CHECKPOINT");
            made.map_err(Error::sql("checkpoint = true"))?;
        }
        let wal = wal_bytes(&mut session)?;
        let watch: Vec<&str> = self.file.watch.iter().map(String::as_str).collect();
        let (mut measured, cold) = match (&self.file.load, self.file.statement(&arm)) {
            (Some(part), _) => {
                let mut load = make_load(part, &self.file.scripts(&arm), &point, bench.seed())?;
                load.pace = self.pace(part)?;
                let cold = self.cold_read(bench, &mut session)?;
                let loaded = bench.load(&load, &watch)?;
                (loaded.measured(), cold.map(ColdRead::end))
            }
            (None, Some(sql)) => {
                bench.watch(&watch)?;
                let cold = self.cold_read(bench, &mut session)?;
                let seconds = timed(&mut session, "the statement to run", &fill_in(sql, &point))?;
                let cold = cold.map(ColdRead::end);
                let sampled = bench.watched();
                let measured = Measured::default().beside(&sampled);
                (measured.with("run_s", seconds), cold)
            }
            (None, None) => (Measured::default(), None),
        };
        measured = measured.with("wal_bytes", wal_bytes(&mut session)? - wal);
        if let Some(cold) = cold
            && let Some(doubt) = cold.doubt(&mut session)?
        {
            bench.overlap(doubt);
        }
        for (name, sql) in self.metric_sql() {
            let value = number(&mut session, &fill_in(sql, &point))?;
            measured = measured.with(name, value);
        }
        Ok(measured)
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let learned_rate = if self.leaves_its_rate() {
            Some(self.learn_rate(shape)?)
        } else {
            None
        };
        Ok(Box::new(Self {
            shape: Some(shape.clone()),
            learned_rate,
            ..self.clone()
        }))
    }

    fn brought(&self) -> Result<Vec<LeftOut>> {
        if self.leaves_its_rate() && self.learned_rate.is_none() {
            return Err(self
                .no_rate("nothing was learned: --learn-from PGDATA --relation schema.table does"));
        }
        Ok(Vec::new())
    }

    fn remarks(&self, _results: &[RunResult]) -> Vec<String> {
        let words = |rate: f64| {
            format!(
                "the learned rate is {} rounds a second, one for each row that was inserted, updated or deleted",
                told(rate)
            )
        };
        self.learned_rate.map(words).into_iter().collect()
    }

    fn by_url(&self) -> ByUrl {
        let setup = &self.file.setup;
        match (setup.cold, setup.restart) {
            (true, _) => ByUrl::Never("cold = true restarts the server before each run"),
            (_, true) => ByUrl::Never("restart = true restarts the server before each run"),
            _ => ByUrl::WithTheWord("the SQL of your own file may do anything there"),
        }
    }

    fn advice(&self, arm: &Arm) -> String {
        let own = self.file.arm.iter().find(|own| own.name == arm.name);
        match own.and_then(|own| own.advice.clone()) {
            Some(advice) => advice,
            None => self.what_makes(arm),
        }
    }
}

impl OwnExperiment {
    /// The file says that its rate is learned.
    fn leaves_its_rate(&self) -> bool {
        let load = self.file.load.as_ref();
        load.is_some_and(|load| load.rate == Some(Rate::Learned))
    }

    /// Rounds a second, one for each row of the table that was written.
    fn learn_rate(&self, shape: &TableShape) -> Result<f64> {
        let table = &shape.table;
        let rates = shape.rates().map_err(|why| self.no_rate(&why))?;
        let rate = rates.rows_a_second().ok_or_else(|| {
            self.no_rate(&format!(
                "the files of {table} are as new as the last commit"
            ))
        })?;
        if rate <= 0.0 {
            return Err(self.no_rate(&format!(
                "no row of {table} was written in the WAL that was read"
            )));
        }
        match Pace::open(rate) {
            Ok(_) => Ok(rate),
            Err(why) => Err(self.no_rate(&why)),
        }
    }

    /// Says in which line a rate is asked for that cannot be had.
    fn no_rate(&self, why: &str) -> Error {
        let line = self.rate_line.unwrap_or_default();
        Error::Refused(format!(
            "line {line}: rate = \"{}\" in [load] cannot be had, as {why}",
            file::LEARNED
        ))
    }

    /// Who decides when rounds begin.
    fn pace(&self, load: &LoadPart) -> Result<Pace> {
        let think = Duration::from_secs_f64(load.think_seconds);
        let rate = match load.rate {
            None => return Ok(Pace::Closed { think }),
            Some(Rate::Number(rate)) => rate,
            Some(Rate::Learned) => self
                .learned_rate
                .ok_or_else(|| self.no_rate("nothing was learned"))?,
        };
        Pace::open(rate).map_err(Error::Refused)
    }

    /// The counts of disk and server right before what is measured, where it is to be read cold.
    fn cold_read(&self, bench: &Bench<'_>, session: &mut Session) -> Result<Option<ColdRead>> {
        let is_cold = self.file.setup.cold;
        is_cold.then(|| ColdRead::begin(bench, session)).transpose()
    }

    /// What the file asks for on the server of each run, before anything is warm or measured.
    fn prepare(&self, bench: &mut Bench<'_>, point: &Point) -> Result<()> {
        let before = statements(&fill_in(&self.file.setup.before, point));
        if !before.is_empty() {
            let mut session = bench.connect()?;
            for statement in before {
                let done = session.execute(&statement);
                done.map_err(Error::sql("before in [setup]"))?;
            }
        }
        if self.file.setup.restart {
            bench.restart()
        } else {
            Ok(())
        }
    }

    /// The settings and statements of an arm that says no advice of its own.
    fn what_makes(&self, arm: &Arm) -> String {
        let mut lines: Vec<String> = arm
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let sql = self.own_sql(&arm.name).trim();
        lines.extend((!sql.is_empty()).then(|| sql.to_owned()));
        let part = self.file.arm.iter().find(|part| part.name == arm.name);
        let own = part.into_iter().flat_map(|part| [&part.script, &part.run]);
        lines.extend(own.flatten().map(|sql| sql.trim().to_owned()));
        lines.extend(
            arm.version
                .iter()
                .map(|version| format!("PostgreSQL {version}")),
        );
        if lines.is_empty() {
            format!("keep it as in {}", arm.name)
        } else {
            lines.join("\n")
        }
    }
}

/// The load of a point at no pace of its own.
fn make_load(part: &LoadPart, scripts: &[(&str, u32)], point: &Point, seed: u64) -> Result<Load> {
    let numbers: BTreeMap<String, i64> = point
        .iter()
        .filter_map(|(axis, value)| Some((axis.replace('-', "_"), value.parse().ok()?)))
        .collect();
    let parse = |(text, weight): &(&str, u32)| {
        let script = Script::parse(&fill_in(text, point), &numbers)
            .map_err(|error| Error::Refused(wrong_script(scripts, text, &error)))?;
        let weight = *weight;
        Ok(Weighted { script, weight })
    };
    let weighted: Vec<Weighted> = scripts.iter().map(parse).collect::<Result<_>>()?;
    let clients = fill_in(&part.clients, point);
    let clients: u32 = clients
        .trim()
        .parse()
        .ok()
        .filter(|clients| *clients > 0)
        .ok_or_else(|| {
            Error::Refused(format!(
                "clients = \"{clients}\" in [load] is not a number of clients"
            ))
        })?;
    let protocol = Protocol::named(&part.protocol).ok_or_else(|| {
        let named = &part.protocol;
        Error::Refused(format!(
            "there is no protocol \"{named}\"; there is simple, extended, prepared"
        ))
    })?;
    let first = weighted.first().map(|first| first.script.clone());
    let first = first.ok_or_else(|| Error::Refused("[load] has no script".to_owned()))?;
    let mut load = Load::new(first, clients, Duration::from_secs_f64(part.seconds));
    load.scripts = weighted;
    load.protocol = protocol;
    load.seed = seed;
    Ok(load)
}

/// Which of several scripts, and what is wrong with it.
fn wrong_script(scripts: &[(&str, u32)], text: &str, error: &SyntaxError) -> String {
    let number = scripts
        .iter()
        .position(|(other, _)| *other == text)
        .unwrap_or_default()
        + 1;
    match scripts.len() {
        1 => format!("the script of [load] is wrong at {error}"),
        _ => format!("script {number} of [[load.mix]] is wrong at {error}"),
    }
}

/// Metrics that every run has, by name: words, unit, which end, whether it is time.
fn built_in(name: &str) -> Option<Metric> {
    let known: [(&str, &str, &str, Better, bool); 7] = [
        ("tps", "rounds a second", "1/s", Better::Higher, true),
        ("latency_mean_ms", "mean latency", "ms", Better::Lower, true),
        (
            "latency_p50_ms",
            "median latency",
            "ms",
            Better::Lower,
            true,
        ),
        (
            "latency_p99_ms",
            "latency of the slowest hundredth",
            "ms",
            Better::Lower,
            true,
        ),
        (
            "latency_max_ms",
            "longest latency",
            "ms",
            Better::Lower,
            true,
        ),
        ("run_s", "time of the statement", "s", Better::Lower, true),
        ("wal_bytes", "WAL of the run", "bytes", Better::Lower, false),
    ];
    let (name, words, unit, better, timing) = known.into_iter().find(|known| known.0 == name)?;
    Some(if timing {
        Metric::timing(name, words, unit, better)
    } else {
        Metric::exact(name, words, unit, better)
    })
}

#[cfg(test)]
mod tests;
