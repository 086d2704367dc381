//! `lab bisect`: which minor release changed a metric.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pgclinic_lab::bisect::{BisectOptions, Found, MinorRange, Outcome, bisect};
use pgclinic_lab::decision::words::figure;
use pgclinic_lab::{Audience, Cell, Error, RunOptions, RunResult};

use super::arguments::{PlanArgs, SiteArgs};
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The experiment, or a file of your own
    name: String,
    /// The releases, both ends included: 15.0..15.20
    #[arg(value_name = "FIRST..LAST", value_parser = MinorRange::parse)]
    range: MinorRange,
    /// The metric that changed
    ///
    /// By the name that `lab list NAME` gives it. The first arm is run at the place at which the
    /// experiment decides; --arm and --only name another.
    #[arg(long, value_name = "NAME")]
    metric: String,
    /// Where the runs go
    ///
    /// By default pgclinic-lab/bisect-NAME-METRIC. A search that was interrupted goes on there.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Seconds to wait for a calm machine
    #[arg(long, value_name = "N", default_value_t = 20)]
    wait_for_calm: u64,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    site: SiteArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let (known, plan) = arguments.plan.of(&arguments.name, world)?;
    let experiment = known.experiment();
    let usual = || {
        let name = format!("bisect-{}-{}", experiment.name(), arguments.metric);
        PathBuf::from("pgclinic-lab").join(name)
    };
    let mut run = RunOptions {
        site: arguments.site.options(world),
        ..RunOptions::default()
    };
    run.calm.patience = Duration::from_secs(arguments.wait_for_calm);
    let options = BisectOptions {
        range: arguments.range,
        metric: arguments.metric.clone(),
        plan,
        run,
        folder: arguments.into.clone().unwrap_or_else(usual),
    };
    let interrupted = Arc::clone(&world.interrupted);
    let mut telling = Telling {
        stderr: &mut *world.stderr,
    };
    match bisect(
        experiment,
        known.text(),
        &options,
        &interrupted,
        &mut telling,
    ) {
        Ok(outcome) => {
            let answer = words(&outcome, &options);
            world.print(&answer)?;
            Ok(match outcome {
                Outcome::Between(_) => Exit::Incomplete,
                _ => Exit::Healthy,
            })
        }
        Err(Error::Interrupted) => {
            world.say("lab: interrupted; the same command goes on");
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

/// A line a run.
struct Telling<'a> {
    stderr: &'a mut dyn std::io::Write,
}

impl Audience for Telling<'_> {
    fn tell(&mut self, words: &str) {
        let _unheard = writeln!(self.stderr, "lab: {words}");
    }

    fn begins(&mut self, _at: usize, _total: usize, _cell: &Cell) {}

    fn ends(&mut self, result: &RunResult) {
        let version = result.environment.get("server_version");
        let version = version.map_or("not run", String::as_str);
        self.tell(&format!(
            "{version}: {} {}",
            result.cell.id,
            result.outcome.words()
        ));
    }
}

/// The answer in one line.
fn words(outcome: &Outcome, options: &BisectOptions) -> String {
    let (range, metric) = (options.range, &options.metric);
    match outcome {
        Outcome::Alike => format!(
            "NO CHANGE  {metric} is the same in {} and {}, as far as these runs show\n",
            range.version(range.first),
            range.version(range.last)
        ),
        Outcome::Changed(found) => {
            let version = range.version(found.first_with);
            let before = range.version(found.last_without);
            format!(
                "CHANGED  {metric} changes in {version}, after {before}{}{}\n",
                ratio(found),
                missing(found, options)
            )
        }
        Outcome::Between(found) => format!(
            "UNDECIDED  {metric} changes after {} and not later than {}{}; a release between them could not be decided{}\n",
            range.version(found.last_without),
            range.version(found.first_with),
            ratio(found),
            missing(found, options)
        ),
    }
}

/// `: 4.6 times [4.1, 5.0] from end to end`.
fn ratio(found: &Found) -> String {
    found.ratio.map_or(String::new(), |(times, interval)| {
        format!(
            ": {} times [{}, {}] from end to end",
            figure(times),
            figure(interval.low),
            figure(interval.high)
        )
    })
}

fn missing(found: &Found, options: &BisectOptions) -> String {
    if found.missing.is_empty() {
        return String::new();
    }
    let versions = found.missing.iter();
    let versions: Vec<String> = versions
        .map(|minor| options.range.version(*minor))
        .collect();
    format!("; not to be had: {}", versions.join(", "))
}
