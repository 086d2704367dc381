//! `lab merge`: folders of one plan from several machines, put into one folder with one page.

use std::path::{Path, PathBuf};

use clap::Args;
use pgclinic_lab::analysis::again;
use pgclinic_lab::compare::{Recorded, Source, gather, merge, unique_names};
use pgclinic_report::{Document, LAB};

use super::arguments::JudgeArgs;
use super::experiment::of_plan;
use super::report::{PAGE, write_page};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Directories of `lab run` or `lab merge` with the same plan
    #[arg(required = true, num_args = 2.., value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// New or empty directory for raw files and page
    ///
    /// The raw files are copied there.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early_beside(LAB, &arguments.into)?;
    let mut sources: Vec<Source> = Vec::new();
    for path in &arguments.folders {
        sources.extend(Source::open(path)?);
    }
    let into = &arguments.into;
    let mut document = of(&sources, into, &arguments.judge)?;
    arguments.output.close(&mut document, world)?;
    let names = unique_names(&recorded(&sources));
    let paths = sources.iter().map(|source| source.folder().path());
    let gathered = gather(paths.zip(names), into)?;
    write_page(&document, &gathered.folder().join(PAGE))?;
    gathered.finish()?;
    if !arguments.output.quiet {
        world.say(&format!("lab: the page is {}", into.join(PAGE).display()));
    }
    let exit = super::report::exit_of(&document);
    Ok(arguments.output.give_again(&document, exit, world))
}

/// The document of all machines together; `directory` is where their raw files lie, or are going
/// to.
pub(super) fn of(
    sources: &[Source],
    folder: &Path,
    judge: &JudgeArgs,
) -> Result<Document, Failure> {
    let Some(first) = sources.first() else {
        return Err(Failure::new("there is nothing to merge".to_owned()));
    };
    let plan = first.folder().plan();
    let known = of_plan(plan)?;
    let experiment = known.experiment();
    let command = again(experiment, plan, None);
    let about = judge.about(folder.display().to_string(), command);
    let merged = merge(experiment, &recorded(sources), &about)?;
    Ok(Document::Experiment(merged))
}

fn recorded(sources: &[Source]) -> Vec<Recorded<'_>> {
    sources.iter().map(Source::recorded).collect()
}
