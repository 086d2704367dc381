//! `lab plan`: what would be run, and what it costs, before anything is started.

use clap::Args;
use pgclinic_lab::{Arm, Axis, Cost, Plan, SkippedHere, skipped_here};
use pgclinic_model::{count, plural, verb_of};
use pgclinic_report::bytes;
use serde::Serialize;

use super::arguments::{PlanArgs, SiteArgs};
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The experiment, or a file of your own
    name: String,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    site: SiteArgs,
    /// Print the plan as JSON
    ///
    /// With every run in its order, and what would be skipped.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// A plan, and what of it this machine would skip.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    skipped: Vec<Skip>,
    skipped_runs: usize,
}

/// An arm, a value of an axis, or a run.
#[derive(Serialize)]
struct Skip {
    what: String,
    why: String,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let (known, plan) = arguments.plan.plan(&arguments.name, world)?;
    let experiment = known.experiment();
    let interrupted = std::sync::Arc::clone(&world.interrupted);
    let skipped = skipped_here(
        experiment,
        &plan,
        &arguments.site.options(world),
        interrupted,
    )?;
    if arguments.json {
        let runs = skipped.runs;
        let skips = skipped
            .lines
            .into_iter()
            .map(|(what, why)| Skip { what, why });
        let planned = Planned {
            plan: &plan,
            skipped: skips.collect(),
            skipped_runs: runs,
        };
        let mut text = serde_json::to_string_pretty(&planned)?;
        text.push('\n');
        world.write(text.as_bytes())?;
    } else {
        let lines = skipped
            .lines
            .iter()
            .map(|(what, why)| (what.as_str(), why.as_str()));
        world.print(&format!(
            "{}{}{}",
            words(experiment.question(), &plan, &skipped),
            learned(&plan),
            table("Skipped on this machine", lines)
        ))?;
    }
    Ok(Exit::Healthy)
}

/// The plan in words.
fn words(question: &str, plan: &Plan, skipped: &SkippedHere) -> String {
    let controls = plan
        .cells
        .iter()
        .filter(|cell| cell.is_control && !plan.is_spare(cell))
        .count();
    let blocks = plan.planned_blocks();
    let mut text = format!(
        "{}: {question}\nplan {}, scale {}, seed {}: {} in {}, {controls} of them controls\n{}\n",
        plan.experiment,
        plan.hash,
        plan.scale.name(),
        plan.seed,
        plural(plan.required_runs(), "run"),
        plural(blocks, "block"),
        price(&plan.cost)
    );
    if skipped.runs > 0 {
        let (runs, all) = (skipped.runs, plan.required_runs());
        text.push_str(&format!(
            "{runs} of the {all} runs {} skipped on this machine\n",
            verb_of(runs, "are")
        ));
    }
    if let (Some(_), Some(budget)) = (plan.spare_from, plan.budget_s) {
        text.push_str(&format!(
            "what is left of {:.0} minutes goes to the cells whose decision is still open, in at most {blocks}\n",
            budget / 60.0, blocks = plural(blocks, "more block")));
    }
    if plan.bases_by_block {
        text.push_str(
            "filled clusters are made again in each block and removed after their runs, so that the disk holds one at a time\n",
        );
    }
    let arms = plan.matrix.arms.iter();
    let is_possible = |arm: &&Arm| !skipped.arms.contains(&arm.name);
    let arms = arms.filter(is_possible);
    let has_baseline = plan
        .matrix
        .arms
        .first()
        .is_some_and(|arm| is_possible(&arm));
    let title = if has_baseline {
        "Arms; the first is the baseline"
    } else {
        "Arms; the baseline is impossible here"
    };
    text.push_str(&table(
        title,
        arms.map(|arm| (arm.name.as_str(), arm.words.as_str())),
    ));
    let axes: Vec<(&str, String)> = plan
        .matrix
        .axes
        .iter()
        .map(|axis| (axis.name.as_str(), values(axis)))
        .collect();
    text.push_str(&table(
        "Axes",
        axes.iter().map(|(name, values)| (*name, values.as_str())),
    ));
    let left_out = plan.left_out.iter();
    text.push_str(&table(
        "Left out",
        left_out.map(|left| (left.what.as_str(), left.why.as_str())),
    ));
    text
}

/// The shape that was learned.
fn learned(plan: &Plan) -> String {
    let shape = plan.yours.shape.as_ref();
    shape.map_or(String::new(), |shape| {
        format!("\nLearned, without any value\n{shape}")
    })
}

/// What it costs, in one line.
pub(super) fn price(cost: &Cost) -> String {
    let time = match cost.seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} seconds"),
        seconds => format!("{:.0} minutes", seconds / 60.0),
    };
    format!(
        "about {time}, {} of disk, {} written, {} of memory, {}",
        bytes(cost.disk_bytes),
        bytes(cost.written_bytes),
        bytes(cost.memory_bytes),
        plural(cost.connections, "connection")
    )
}

/// Counts read as counts; what a server setting is set to stays as it is typed.
fn values(axis: &Axis) -> String {
    let word = |value: &String| match value.parse::<u64>() {
        Ok(number) if axis.setting.is_none() => count(number),
        _ => value.clone(),
    };
    let words: Vec<String> = axis.values.iter().map(word).collect();
    words.join(", ")
}

fn table<'a>(title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows: Vec<(&str, &str)> = rows.collect();
    let width = rows
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    if rows.is_empty() {
        return String::new();
    }
    let line = |(name, words): &(&str, &str)| format!("  {name:width$}  {words}\n");
    format!("\n{title}\n{}", rows.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_as_in_every_report() {
        let cost = Cost {
            seconds: 30.0,
            disk_bytes: 4461 << 20,
            written_bytes: 11 << 30,
            memory_bytes: 256 << 20,
            connections: 1,
        };
        assert_eq!(
            price(&cost),
            "about 30 seconds, 4.3 GiB of disk, 11.0 GiB written, 256.0 MiB of memory, 1 connection"
        );
        let mut axis = Axis {
            name: "rows".into(),
            unit: String::new(),
            values: ["250000", "1000000", "full"].map(String::from).into(),
            setting: None,
        };
        assert_eq!(values(&axis), "250,000, 1,000,000, full");
        axis.setting = Some("work_mem".into());
        assert_eq!(values(&axis), "250000, 1000000, full");
    }
}
