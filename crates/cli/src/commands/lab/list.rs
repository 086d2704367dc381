//! `lab list`: the questions, and what can be watched beside a load.

use clap::Args;
use pgclinic_lab::samplers::{SAMPLERS, Sampler};
use pgclinic_lab::{EXPERIMENTS, Experiment, Scale};

use super::experiment::find;
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Everything about this experiment
    name: Option<String>,
    /// What is watched beside a load, and what that costs
    #[arg(long, conflicts_with = "name")]
    samplers: bool,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let text = match &arguments.name {
        Some(name) => page(find(name)?.experiment()),
        None if arguments.samplers => samplers(),
        None => list(),
    };
    world.print(&text)?;
    Ok(Exit::Healthy)
}

fn list() -> String {
    let width = EXPERIMENTS.iter().map(|one| one.name().len()).max();
    let width = width.unwrap_or_default();
    let line = |one: &&dyn Experiment| format!("{:width$}  {}\n", one.name(), one.question());
    let mut text: String = EXPERIMENTS.iter().map(line).collect();
    text.push_str(
        "\n`pgclinic lab list NAME` says more, `pgclinic lab plan NAME` says what it costs.\n",
    );
    text
}

fn samplers() -> String {
    let one = |sampler: &&dyn Sampler| {
        format!(
            "{}, every {} ms\n  {}\n  Cost: {}\n",
            sampler.name(),
            sampler.every().as_millis(),
            sampler.about(),
            sampler.cost()
        )
    };
    let mut text: String = SAMPLERS.iter().map(one).collect();
    text.push_str(
        "\nWhat watching really cost stands beside each run as watching.cpu_s, by sampler in its load.json.\n",
    );
    text
}

fn page(experiment: &dyn Experiment) -> String {
    let matrix = experiment.matrix(Scale::Quick);
    let mut text = format!(
        "{}: {}\n\n{}\n\nArms\n",
        experiment.name(),
        experiment.question(),
        experiment.explain()
    );
    for arm in &matrix.arms {
        text.push_str(&format!("  {:16} {}\n", arm.name, arm.words));
    }
    text.push_str("\nAxes\n");
    for axis in &matrix.axes {
        text.push_str(&format!("  {:16} {}\n", axis.name, axis.values.join(", ")));
    }
    text.push_str("\nMeasured; the first decides\n");
    for metric in experiment.metrics() {
        let unit = if metric.unit.is_empty() {
            String::new()
        } else {
            format!(" ({})", metric.unit)
        };
        text.push_str(&format!("  {:16} {}{unit}\n", metric.name, metric.words));
    }
    text
}
