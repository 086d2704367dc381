//! `pgclinic drill --scenario NAME` and `--scenarios`.

use super::{Arguments, installation, threads};
use crate::drill::scenario::{self, SCENARIOS, Scene};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::{REPORT, write_file};
use crate::progress::Bar;

/// Lists the scenarios.
pub(super) fn list(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let names = SCENARIOS
        .iter()
        .map(|scenario| format!("{}\n", scenario.name()));
    write(arguments, &names.collect::<String>(), world)?;
    Ok(Exit::Healthy)
}

/// Runs those that were named, and prints what they gave.
pub(super) fn show(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    if arguments.output.format != "text" {
        let why = "a scenario is written in Markdown: --format has no other form of it";
        return Err(Failure::new(why));
    }
    for name in &arguments.scenario {
        scenario::refuse_unknown(name)?;
    }
    let (installation, run_as) = installation(arguments, world)?;
    let scene = Scene::make(installation, run_as)?;
    let named = arguments
        .scenario
        .iter()
        .map(|name| scenario::tasks(&scene, name));
    let tasks = named.collect::<Result<Vec<_>, _>>()?.concat();
    let bar = Bar::of_steps(
        &arguments.output,
        world.terminal,
        &world.interrupted,
        tasks.len() as u64,
    );
    let step = |name: &str| bar.step(name);
    let threads = threads(arguments);
    let runs = scenario::run(&scene, &tasks, threads, &world.interrupted, &step)?;
    bar.finish();
    let sections = runs.iter().map(scenario::section);
    write(arguments, &sections.collect::<String>(), world)?;
    Ok(if world.is_interrupted() {
        Exit::Interrupted
    } else {
        Exit::Healthy
    })
}

/// Markdown, the only form of a scenario.
fn write(arguments: &Arguments, text: &str, world: &mut Env<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.output.output {
        return write_file(path, REPORT, |out| out.write_all(text.as_bytes()));
    }
    write!(world.stdout, "{text}")
        .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))
}
