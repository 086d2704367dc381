//! `lab run` and `lab resume`: carrying out what has no result yet.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pgclinic_lab::{Error, Experiment, Outcome, RunFolder, RunOptions, RunResult, carry_out};
use pgclinic_model::plural;
use pgclinic_report::LAB;

use super::arguments::{JudgeArgs, PlanArgs, SiteArgs};
use super::audience::Telling;
use super::experiment::of_plan;
use super::plan::price;
use super::report;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::{OutputArgs, ProgressStyle};
use crate::progress::Bar;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The experiment, or a file of your own
    name: String,
    /// Where plan, journal and results go
    ///
    /// By default pgclinic-lab/NAME-HASH.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    work: WorkArgs,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    /// A directory that `lab run` has begun
    folder: PathBuf,
    #[command(flatten)]
    work: WorkArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
struct WorkArgs {
    /// Run again what failed, gave nothing or was skipped
    #[arg(long)]
    again: bool,
    /// Seconds to wait for a calm machine
    ///
    /// For runs whose metric is time. After that the run is made all the same, and says so.
    #[arg(long, value_name = "N", default_value_t = 20)]
    wait_for_calm: u64,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    site: SiteArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let (known, plan) = arguments.plan.plan(&arguments.name, world)?;
    let short = plan.hash.get(..8).unwrap_or(&plan.hash);
    let usual = || PathBuf::from("pgclinic-lab").join(format!("{}-{short}", plan.experiment));
    let path = arguments.into.clone().unwrap_or_else(usual);
    arguments.work.output.refuse_early_beside(LAB, &path)?;
    let folder = RunFolder::create(&path, plan)?;
    work(known.experiment(), &folder, &arguments.work, world)
}

pub(super) fn resume(arguments: &ResumeArguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    arguments.work.output.refuse_early(LAB, &[])?;
    let folder = RunFolder::open(&arguments.folder)?;
    let known = of_plan(folder.plan())?;
    work(known.experiment(), &folder, &arguments.work, world)
}

fn work(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    arguments: &WorkArgs,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let plan = folder.plan();
    let output = &arguments.output;
    let place = folder.path().display();
    if !output.quiet {
        let runs = plan.required_runs();
        world.say(&format!(
            "lab: {}, {}, into {place}",
            plural(runs, "run"),
            price(&plan.cost)
        ));
    }
    let mut options = RunOptions {
        site: arguments.site.options_in(folder, world)?,
        judge: arguments.judge.judge(),
        again: arguments.again,
        ..RunOptions::default()
    };
    options.calm.patience = Duration::from_secs(arguments.wait_for_calm);
    let steps = u64::try_from(plan.required_runs()).unwrap_or(u64::MAX);
    let lines = output.progress == ProgressStyle::Plain
        || (output.progress == ProgressStyle::Auto && !world.terminal.stderr);
    let mut telling = Telling {
        bar: Bar::of_steps(output, world.terminal, &world.interrupted, steps),
        stderr: &mut *world.stderr,
        quiet: output.quiet,
        lines,
    };
    let interrupted = std::sync::Arc::clone(&world.interrupted);
    let ended = carry_out(experiment, folder, &options, interrupted, &mut telling);
    telling.bar.finish();
    match ended {
        Ok(results) => finish(experiment, &results, folder, arguments, world),
        Err(Error::Interrupted) => {
            world.say(&format!(
                "lab: interrupted; `pgclinic lab resume {place}` goes on"
            ));
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

/// Says how the runs ended, shows what they say, and leaves a page of it beside them.
fn finish(
    experiment: &dyn Experiment,
    results: &[RunResult],
    folder: &RunFolder,
    arguments: &WorkArgs,
    world: &mut Env<'_>,
) -> Result<Exit, Failure> {
    let count = |fits: fn(&Outcome) -> bool| {
        results
            .iter()
            .filter(|result| fits(&result.outcome))
            .count()
    };
    let done = count(|outcome| matches!(outcome, Outcome::Done));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped { .. }));
    let broken = results.len() - done - skipped;
    let mut document = report::of(experiment, folder, &arguments.judge)?;
    arguments.output.close(&mut document, world)?;
    let page = report::leave_page(&document, folder)?;
    if !arguments.output.quiet {
        world.say(&format!(
            "lab: {done} done, {skipped} skipped, {broken} failed or empty; the page is {}",
            page.display(),
            done = plural(done, "run")
        ));
    }
    let exit = match broken {
        0 => Exit::Healthy,
        _ => Exit::Incomplete,
    };
    Ok(arguments.output.give_again(&document, exit, world))
}
