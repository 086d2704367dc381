//! `lab report`: what the results of a folder say.

use std::path::{Path, PathBuf};

use clap::Args;
use pgclinic_lab::analysis::{Machine, again, document};
use pgclinic_lab::compare::{Source, is_merged};
use pgclinic_lab::{Experiment, RunFolder, RunResult};
use pgclinic_report::{Document, LAB, Options, by_name};

use super::arguments::JudgeArgs;
use super::experiment::of_plan;
use super::merge;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::{OutputArgs, REPORT, write_file};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A directory of `lab run` or `lab merge`
    ///
    /// An HTML page links to raw files when it is written into that directory.
    folder: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The page that is left beside the runs.
pub(super) const PAGE: &str = "report.html";

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early(LAB, &[])?;
    let (path, judge) = (&arguments.folder, &arguments.judge);
    let document = if is_merged(path)? {
        merge::of(&Source::open(path)?, path, judge)?
    } else {
        let folder = RunFolder::open(path)?;
        let known = of_plan(folder.plan())?;
        of(known.experiment(), &folder, judge)?
    };
    let exit = exit_of(&document);
    Ok(arguments.output.give(document, exit, world))
}

/// The document of a directory.
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
    let plan = folder.plan_as_run();
    let machine = Machine {
        name: host(&results),
        prefix: "",
        plan: &plan,
        results: &results,
    };
    let mut made = document(experiment, &plan, &[machine], &about);
    let unreadable = unreadable.iter().map(ToString::to_string);
    made.remarks.extend(unreadable);
    Ok(Document::Experiment(made))
}

/// The machine's name, where the runs know it.
pub(super) fn host(results: &[RunResult]) -> &str {
    let known = results
        .first()
        .and_then(|result| result.environment.get("host"));
    known.map_or("this machine", String::as_str)
}

/// Writes the page into the directory, where its links to raw files lead somewhere.
pub(super) fn leave_page(document: &Document, folder: &RunFolder) -> Result<PathBuf, Failure> {
    write_page(document, &folder.path().join(PAGE))
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
