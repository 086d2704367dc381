//! `lab report`: what the results of a folder say.

use std::path::{Path, PathBuf};

use clap::Args;
use pgclinic_lab::analysis::{Machine, again, document};
use pgclinic_lab::{Experiment, RunFolder, RunResult};
use pgclinic_report::{Document, Options, by_name};

use super::arguments::JudgeArgs;
use super::experiment::of_plan;
use crate::exit::{Exit, Failure};
use crate::output::{OutputArgs, REPORT, write_file};
use crate::world::World;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A folder of `lab run`; an HTML page links to raw files when it is written into it
    folder: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early(&[])?;
    let folder = RunFolder::open(&arguments.folder)?;
    let known = of_plan(folder.plan())?;
    let document = of(known.experiment(), &folder, &arguments.judge)?;
    let exit = exit_of(&document);
    Ok(arguments.output.give(&document, exit, world))
}

/// The document of a folder.
pub(super) fn of(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    judge: &JudgeArgs,
) -> Result<Document, Failure> {
    let (results, unreadable) = folder.results()?;
    let about = judge.about(
        folder.path().display().to_string(),
        again(experiment, folder.plan(), folder.kept_site()?.as_ref()),
    );
    let machine = Machine {
        name: host(&results),
        prefix: "",
        results: &results,
    };
    let mut made = document(experiment, &folder.plan_as_run(), &[machine], &about);
    made.remarks.extend(unreadable.iter().map(|one| {
        format!(
            "{} cannot be read and does not count: {}",
            one.path.display(),
            one.why
        )
    }));
    Ok(Document::Experiment(made))
}

/// The machine's name, where the runs know it.
pub(super) fn host(results: &[RunResult]) -> &str {
    let known = results
        .first()
        .and_then(|result| result.environment.get("host"));
    known.map_or("this machine", String::as_str)
}

/// Writes the page into the folder, where its links to raw files lead somewhere.
pub(super) fn leave_page(document: &Document, folder: &RunFolder) -> Result<PathBuf, Failure> {
    write_page(document, &folder.path().join("report.html"))
}

/// Writes a page.
pub(super) fn write_page(document: &Document, path: &Path) -> Result<PathBuf, Failure> {
    let form =
        by_name("html").ok_or_else(|| Failure::new("there is no form \"html\"".to_owned()))?;
    let options = Options::default();
    write_file(path, REPORT, |out| form.render(document, &options, out))?;
    Ok(path.to_path_buf())
}

/// Complete, or not yet.
pub(super) fn exit_of(document: &Document) -> Exit {
    match document {
        Document::Experiment(document) if !document.complete => Exit::Incomplete,
        _ => Exit::Healthy,
    }
}
