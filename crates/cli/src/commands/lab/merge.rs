//! `lab merge`: folders of one plan from several machines, put into one folder with one page.

use std::path::PathBuf;

use clap::Args;
use pgclinic_lab::across::{Recorded, gather, merge, unique_names};
use pgclinic_lab::analysis::again;
use pgclinic_lab::{RunFolder, RunResult};
use pgclinic_report::Document;

use super::arguments::JudgeArgs;
use super::experiment::of_plan;
use super::report::write_page;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;
use crate::world::World;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folders of `lab run` with the same plan
    #[arg(required = true, num_args = 2..)]
    folders: Vec<PathBuf>,
    /// Where copies of the raw files and the page go; a new or empty folder
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early_beside(&arguments.into)?;
    let mut opened: Vec<(String, RunFolder, Vec<RunResult>)> = Vec::new();
    for path in &arguments.folders {
        let folder = RunFolder::open(path)?;
        let (results, _) = folder.results()?;
        opened.push((path.display().to_string(), folder, results));
    }
    let recorded = opened.iter().map(|(name, folder, results)| Recorded {
        name,
        place: name,
        plan: folder.plan(),
        results,
    });
    let recorded: Vec<Recorded<'_>> = recorded.collect();
    let Some(first) = recorded.first() else {
        return Err(Failure::new("there is nothing to merge".to_owned()));
    };
    let known = of_plan(first.plan)?;
    let experiment = known.experiment();
    let into = &arguments.into;
    let command = again(experiment, first.plan, None);
    let about = arguments.judge.about(into.display().to_string(), command);
    let document = Document::Experiment(merge(experiment, &recorded, &about)?);
    let sources = opened.iter().map(|(_, folder, _)| folder.path());
    gather(sources.zip(unique_names(&recorded)), into)?;
    let page = write_page(&document, &into.join("report.html"))?;
    if !arguments.output.quiet {
        world.say(&format!("lab: the page is {}", page.display()));
    }
    let exit = super::report::exit_of(&document);
    Ok(arguments.output.give(&document, exit, world))
}
