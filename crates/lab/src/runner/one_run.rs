//! One run, from the first look at its server to a folder that counts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use pgclinic_servers::Installation;

use crate::bench::Bench;
use crate::cell::{Arm, Cell, Metric, Outcome, RunResult};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Measured};
use crate::plan::{Plan, block_seed};
use crate::runner::calm::{self, CalmOptions};
use crate::runner::folder::RunFolder;
use crate::runner::{Audience, journal};
use crate::servers_of_arms::{BaseRequest, Site, settings_of, wanted};

/// The machine's clock and the steady one may differ by this much in one run before it is a jump.
const JUMP: Duration = Duration::from_secs(2);

/// Makes one run and its folder. Only an interruption, and a folder that cannot be written, are
/// errors.
pub(super) fn make(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    cell: &Cell,
    site: &mut Site,
    calm: &CalmOptions,
    audience: &mut dyn Audience,
) -> Result<RunResult> {
    let part = folder.begin_run(cell)?;
    let mut result = blank(cell);
    let clock = Clock::start();
    if let Err(error) = measure(
        experiment,
        folder.plan(),
        site,
        calm,
        audience,
        &part,
        &mut result,
    ) {
        result.outcome = outcome_of(error)?;
    }
    result.overlaps.extend(clock.jump());
    result.elapsed_s = clock.steady.elapsed().as_secs_f64();
    result.files = names_in(&part)?;
    folder.end_run(&part, &result)?;
    Ok(result)
}

fn blank(cell: &Cell) -> RunResult {
    RunResult {
        cell: cell.clone(),
        outcome: Outcome::Done,
        metrics: Default::default(),
        series: Default::default(),
        environment: Default::default(),
        overlaps: Vec::new(),
        files: Vec::new(),
        started: journal::now(),
        elapsed_s: 0.0,
    }
}

fn outcome_of(error: Error) -> Result<Outcome> {
    match error {
        Error::Interrupted => Err(Error::Interrupted),
        Error::Skip(why) => Ok(Outcome::Skipped { why }),
        Error::Empty(why) => Ok(Outcome::Empty { why }),
        error => Ok(Outcome::Failed {
            why: in_one_line(&error.to_string()),
        }),
    }
}

/// A server that gave up, as on a full disk, has told its clients nothing: its log says why.
fn with_last_words(error: Error, log: &str) -> Error {
    let mut last = log.lines().rev();
    let words = last.find_map(|line| Some(line.split_once("PANIC:  ")?.1));
    match (error, words) {
        (Error::Sql { what, source }, Some(words)) => Error::Refused(format!(
            "{what}: {source}; the server's log: PANIC:  {words}"
        )),
        (error, _) => error,
    }
}

/// A server's log has lines, and a reason is one sentence.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" / ")
}

fn measure(
    experiment: &dyn Experiment,
    plan: &Plan,
    site: &mut Site,
    calm: &CalmOptions,
    audience: &mut dyn Audience,
    part: &Path,
    result: &mut RunResult,
) -> Result<()> {
    let cell = result.cell.clone();
    let arm = plan
        .arm(&cell.arm)
        .ok_or_else(|| Error::Refused(format!("the plan has no arm {}", cell.arm)))?;
    let opened = open_bench(experiment, plan, &cell, arm, site, audience, part);
    if let Err(Error::Server(pgclinic_servers::Error::NotStarted { log, .. })) = &opened {
        // The server that fills the base is the first with the arm's settings.
        let path = part.join("server.log");
        std::fs::write(&path, log).map_err(Error::io("write", &path))?;
    }
    let mut bench = opened?;
    if decides_on_time(experiment, plan) {
        let busy = calm::wait(calm, &mut |_| bench.check_interrupted())?;
        bench.overlaps.extend(busy);
    }
    let measured = experiment.run(&mut bench);
    let interrupted = bench.check_interrupted();
    let finished = bench.finish();
    result.environment = std::mem::take(&mut bench.environment);
    result.overlaps = std::mem::take(&mut bench.overlaps);
    bench.keep("server.log", bench.log.as_bytes())?;
    // A server that was stopped under the run makes it fail in a hundred ways; none of them is its
    // result.
    interrupted?;
    let measured = measured.map_err(|error| with_last_words(error, &bench.log))?;
    finished?;
    take(plan, measured, result)
}

/// Whether a decision of this plan leans on a metric that depends on the machine's speed.
fn decides_on_time(experiment: &dyn Experiment, plan: &Plan) -> bool {
    let compared = experiment.comparisons(&plan.matrix);
    let decides = |metric: &&Metric| {
        let mut names = compared.iter().map(|comparison| &comparison.metric);
        names.any(|name| *name == metric.name)
    };
    let mut deciding = plan.metrics.iter().filter(decides).chain(plan.primary());
    deciding.any(|metric| metric.timing)
}

/// Removes the bases that no run needs that is left: none of the whole plan, or, where bases are
/// made anew in each block, none of this block.
pub(super) fn drop_bases<'a>(
    experiment: &dyn Experiment,
    plan: &Plan,
    site: &mut Site,
    after: &Cell,
    left: impl Iterator<Item = &'a Cell>,
) {
    let mut needed = BTreeSet::new();
    let left = left.filter(|cell| !plan.bases_by_block || cell.block == after.block);
    for cell in left {
        let known = plan.arm(&cell.arm).and_then(|arm| {
            let installation = site.known_installation(arm)?;
            Some((arm, installation))
        });
        if let Some((arm, installation)) = known {
            needed.insert(wish(experiment, plan, cell, arm, installation).key());
        }
    }
    site.keep_bases(&needed);
}

fn wish<'a>(
    experiment: &'a dyn Experiment,
    plan: &Plan,
    cell: &Cell,
    arm: &'a Arm,
    installation: &'a Installation,
) -> BaseRequest<'a> {
    BaseRequest {
        experiment,
        installation,
        arm,
        base: experiment.base(cell, arm, plan.scale),
        scale: plan.scale,
        seed: plan.seed,
    }
}

/// A run must give its deciding metric, and every number must be one.
fn take(plan: &Plan, measured: Measured, result: &mut RunResult) -> Result<()> {
    result.metrics = measured.metrics;
    result.series = measured.series;
    result.metrics.retain(|_, value| value.is_finite());
    match plan.primary() {
        Some(primary) if !result.metrics.contains_key(&primary.name) => {
            Err(Error::Empty(format!("the run gave no {}", primary.words)))
        }
        _ => Ok(()),
    }
}

fn open_bench<'a>(
    experiment: &dyn Experiment,
    plan: &Plan,
    cell: &'a Cell,
    arm: &'a Arm,
    site: &'a mut Site,
    audience: &mut dyn Audience,
    part: &Path,
) -> Result<Bench<'a>> {
    let installation = site.installation(arm, &mut |words| audience.tell(words))?;
    site.learn(&installation)?;
    if let Some(features) = site.known_features(&installation) {
        let needs = experiment.needs(cell, arm);
        let mut needs = needs.iter();
        let missing = needs.find_map(|need| need.missing_here(features, &installation, arm));
        if let Some(missing) = missing {
            return Err(Error::Skip(missing));
        }
    }
    let wanted = wanted(&plan.matrix, cell, arm);
    let given = site.given.as_ref();
    if let Some(missing) = given.and_then(|given| given.missing(arm, &wanted)) {
        return Err(Error::Skip(missing));
    }
    let settings = match given {
        Some(_) => wanted,
        None => {
            let connections = experiment.cost(cell, plan.scale).connections;
            settings_of(wanted, installation.major, connections)
        }
    };
    let data = site.data(&wish(experiment, plan, cell, arm, &installation))?;
    Ok(Bench {
        site,
        cell,
        arm,
        scale: plan.scale,
        seed: block_seed(plan.seed, cell.block),
        installation,
        settings,
        data,
        server: None,
        folder: part.to_path_buf(),
        log: String::new(),
        environment: Default::default(),
        overlaps: Vec::new(),
        processors: None,
        watching: None,
        seen: Vec::new(),
    })
}

/// The machine's clock beside one that never jumps.
struct Clock {
    steady: Instant,
    wall: SystemTime,
}

impl Clock {
    fn start() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// Words when the machine's clock was set meanwhile.
    fn jump(&self) -> Option<String> {
        let steady = self.steady.elapsed();
        let wall = SystemTime::now().duration_since(self.wall);
        let words = |by: Duration, way: &str| {
            (by > JUMP).then(|| {
                format!(
                    "the machine's clock jumped {way} by {:.0} s",
                    by.as_secs_f64()
                )
            })
        };
        match wall {
            Ok(wall) if wall > steady => words(wall - steady, "forward"),
            Ok(wall) => words(steady - wall, "back"),
            Err(back) => words(back.duration() + steady, "back"),
        }
    }
}

fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io("list", folder))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use pgclinic_servers::SqlError;

    use super::*;
    use crate::experiments::experiment_named;
    use crate::plan::PlanOptions;

    #[test]
    fn the_last_words_of_a_server_stand_in_the_reason() {
        let log = "LOG:  starting\nPANIC:  could not write to file \"pg_wal/1\": No space left on device\nLOG:  gone\n";
        let lost = || Error::Sql {
            what: "the statement of [run]".to_owned(),
            source: SqlError::Gone,
        };
        let told = with_last_words(lost(), log).to_string();
        assert!(
            told.ends_with("PANIC:  could not write to file \"pg_wal/1\": No space left on device"),
            "{told}"
        );
        let silent = with_last_words(lost(), "LOG:  starting\n").to_string();
        assert_eq!(silent, lost().to_string());
        let skipped = with_last_words(Error::Skip("no".to_owned()), log);
        assert_eq!(skipped.to_string(), "no");
    }

    #[test]
    fn a_second_metric_that_decides_on_time_waits_for_a_calm_machine_too() {
        let waits = |name: &str| {
            let experiment = experiment_named(name).expect("it is registered");
            let plan = Plan::make(experiment, None, &PlanOptions::default()).expect("a plan");
            let first = plan.primary().is_some_and(|metric| metric.timing);
            (first, decides_on_time(experiment, &plan))
        };
        assert_eq!(waits("uuid-keys"), (false, true));
        assert_eq!(waits("analyze-prefetch"), (true, true));
        assert_eq!(waits("duplicate-inserts"), (false, false));
    }

    #[test]
    fn a_clock_that_was_set_is_noted_and_one_that_was_not_is_silent() {
        assert_eq!(Clock::start().jump(), None);
        let hour = Duration::from_secs(3600);
        let set_forward = Clock {
            steady: Instant::now(),
            wall: SystemTime::now() - hour,
        };
        let words = set_forward.jump().expect("a jump");
        assert_eq!(words, "the machine's clock jumped forward by 3600 s");
        let set_back = Clock {
            steady: Instant::now(),
            wall: SystemTime::now() + hour,
        };
        assert!(set_back.jump().expect("a jump").contains("back by 3600 s"));
    }
}
