//! Carrying out a plan: every cell that has no result yet, in order, into a folder that says the
//! truth at any moment.
//!
//! ```text
//! FOLDER/plan.json        what is asked, with its hash
//!        site.json        servers and places of the first run, for all that follow
//!        journal.jsonl    what happened when, appended and synced
//!        lock             held while somebody works here
//!        runs/<id>/       run.json, server.log, raw files: whole or not there
//!        runs/.part-<id>/ the run in flight; removed by the next start
//! ```

mod calm;
mod enough;
mod folder;
mod journal;
mod one_run;
mod overrun;
mod site;
mod skips;
mod spare;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::analysis::Judge;
use crate::cell::{Cell, RunResult};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::external_server;
use crate::plan::Plan;
use crate::servers_of_arms::{Site, SiteOptions};

pub use calm::CalmOptions;
pub use folder::{RunFolder, Unreadable};
pub use journal::{Entry, Event};
pub use site::KeptSite;
pub(crate) use site::quoted;
pub use skips::{SkippedHere, skipped_here};

/// Who hears how it goes.
pub trait Audience {
    /// A slow step, such as fetching a server.
    fn tell(&mut self, words: &str);
    /// A run begins, the `at`-th of `total`.
    fn begins(&mut self, at: usize, total: usize, cell: &Cell);
    /// A run has its result.
    fn ends(&mut self, result: &RunResult);
}

/// How to carry it out.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Servers and places.
    pub site: SiteOptions,
    /// When the machine counts as calm.
    pub calm: CalmOptions,
    /// Run again what failed, was empty or was skipped.
    pub again: bool,
    /// When a decision counts as open, for the runs of the spare blocks.
    pub judge: Judge,
}

/// The servers' site, once it is known that the experiment may run there and that the machine holds
/// the plan.
fn open_site(
    experiment: &dyn Experiment,
    plan: &Plan,
    todo: &[(usize, &Cell)],
    options: &RunOptions,
    interrupted: Arc<AtomicBool>,
) -> Result<Site> {
    if let Some(given) = &options.site.url {
        external_server::check(experiment, given)?;
    }
    let mut site = Site::open(options.site.clone(), interrupted)?;
    if todo.iter().any(|(_, cell)| !plan.is_spare(cell)) {
        enough::check(experiment, plan, &mut site)?;
    }
    Ok(site)
}

/// Runs what has no result yet. [`Error::Interrupted`] leaves a folder that can be resumed.
pub fn carry_out(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    options: &RunOptions,
    interrupted: Arc<AtomicBool>,
    audience: &mut dyn Audience,
) -> Result<Vec<RunResult>> {
    let _lock = folder.lock()?;
    folder.clean()?;
    let options = &RunOptions {
        site: folder.site(&options.site)?,
        ..options.clone()
    };
    let done = folder.results()?.0;
    let counts = |result: &RunResult| result.is_done() || !options.again;
    let plan = folder.plan();
    let todo: Vec<(usize, &Cell)> = (1..)
        .zip(&plan.cells)
        .filter(|(_, cell)| {
            !done
                .iter()
                .any(|result| result.cell == **cell && counts(result))
        })
        .collect();
    let opened = open_site(experiment, plan, &todo, options, interrupted);
    let mut site = opened.inspect_err(|error| {
        if !matches!(error, Error::Interrupted) {
            folder.forget_unbegun();
        }
    })?;
    let event = if done.is_empty() {
        Event::Began
    } else {
        Event::Resumed
    };
    folder.keep_site(&options.site)?;
    folder.journal(&Entry::new(event))?;
    let mut overrun = overrun::Overrun::default();
    let mut spare = spare::BudgetRemainder::new(options.judge);
    for (done, (at, cell)) in todo.iter().copied().enumerate() {
        site.check_interrupted()?;
        if overrun.drops(experiment, folder, cell, &mut |words| audience.tell(words))?
            || (plan.is_spare(cell) && !spare.wants(experiment, folder, cell)?)
        {
            continue;
        }
        audience.begins(at, plan.required_runs().max(at), cell);
        folder.journal(&Entry::of_run(Event::RunBegan, cell))?;
        let result = one_run::make(experiment, folder, cell, &mut site, &options.calm, audience)?;
        folder.journal(&Entry::of_result(&result))?;
        audience.ends(&result);
        let left = todo.iter().skip(done + 1).map(|(_, cell)| *cell);
        one_run::drop_bases(experiment, plan, &mut site, cell, left);
    }
    folder.journal(&Entry::new(Event::Ended))?;
    let (results, unreadable) = folder.results()?;
    match unreadable.first() {
        None => Ok(results),
        Some(first) => Err(Error::Refused(format!(
            "{} cannot be read: {}. Remove the directory and resume.",
            first.path.display(),
            first.why
        ))),
    }
}
