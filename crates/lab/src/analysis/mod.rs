//! From a plan and its results to the document that a report shows.
//!
//! ```text
//! results of one or more machines ─► observations.rs   one list, blocks of different machines kept apart
//!                                      ├─► noise.rs         control runs against what they repeat, at a card's own place
//!                                      ├─► figures.rs       medians, intervals, effects, every dot
//!                                      ├─► cards.rs         the experiment's comparisons, decided
//!                                      ├─► environment.rs   what was equal, what differs between arms
//!                                      └─► mixed.rs         runs on another server than the first of their arm
//! ```

mod cards;
mod command;
mod environment;
mod figures;
mod mixed;
mod noise;
mod observations;
mod summary;

use pgclinic_model::document::{ExperimentDocument, PlanSummary, Tool};

use crate::cell::RunResult;
use crate::decision::{Comparison, Withheld};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::published;

pub use command::again;
pub use observations::Machine;
pub(crate) use observations::{Observation, Observations};

/// Wrong decisions that are accepted when the user does not say: one in twenty.
pub const ALPHA: f64 = 0.05;

/// Differences that do not matter when the user does not say: two percent.
pub const MARGIN: f64 = 0.02;

/// How results are judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judge {
    /// Accepted share of wrong decisions, over all cards of the page.
    pub alpha: f64,
    /// Differences below this share do not matter.
    pub margin: f64,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            alpha: ALPHA,
            margin: MARGIN,
        }
    }
}

/// What the document says beside the results.
#[derive(Clone, PartialEq, Debug)]
pub struct About {
    /// The folder of the experiment.
    pub folder: String,
    /// The command that runs it again.
    pub command: String,
    /// How results are judged.
    pub judge: Judge,
}

/// Whether values of one block belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Design {
    /// Sides are compared inside blocks.
    Blocks,
    /// Sides were measured at different times.
    Apart,
}

/// All that the parts are made from.
pub(crate) struct Study<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) observations: Observations,
    pub(crate) comparisons: Vec<Comparison>,
    /// Why a comparison of the same place gives no advice; those that are not named are decided.
    pub(crate) withheld: Vec<Option<Withheld>>,
    pub(crate) design: Design,
    pub(crate) blocks: u32,
    pub(crate) judge: Judge,
}

/// The document of an experiment that ran on one or more machines. `plan` says what was asked; how
/// many blocks of it each machine was to run stands in the machine's own.
pub fn document(
    experiment: &dyn Experiment,
    plan: &Plan,
    machines: &[Machine<'_>],
    about: &About,
) -> ExperimentDocument {
    let blocks = machines.iter().map(|machine| machine.plan.matrix.blocks);
    let results: Vec<RunResult> = machines
        .iter()
        .flat_map(|machine| machine.results.iter().cloned())
        .collect();
    let comparisons = experiment.comparisons(&plan.matrix);
    let withheld = comparisons
        .iter()
        .map(|comparison| experiment.withheld(comparison, &results))
        .collect();
    let study = Study {
        plan,
        observations: Observations::of(machines),
        comparisons,
        withheld,
        design: Design::Blocks,
        blocks: blocks.fold(0, u32::saturating_add),
        judge: about.judge,
    };
    let mut remarks = experiment.remarks(&results);
    remarks.extend(published::without_series(&plan.experiment).map(str::to_owned));
    remarks.extend(summary::left_out(machines));
    remarks.extend(mixed::remarks(machines));
    remarks.extend(environment::beneath(machines));
    let mut document = compose(experiment.question(), &study, machines, about, remarks);
    document.cards.splice(0..0, experiment.verdicts(&results));
    document
}

/// Puts the parts together.
pub(crate) fn compose(
    question: &str,
    study: &Study<'_>,
    machines: &[Machine<'_>],
    about: &About,
    remarks: Vec<String>,
) -> ExperimentDocument {
    let plan = study.plan;
    let runs = summary::runs(machines);
    ExperimentDocument {
        schema: "pgclinic.lab/1".into(),
        tool: Tool::this(),
        experiment: plan.experiment.clone(),
        question: question.to_owned(),
        plan: PlanSummary {
            hash: plan.hash.clone(),
            seed: plan.seed,
            scale: plan.scale.name().into(),
            blocks: study.blocks,
            alpha: about.judge.alpha,
            margin: about.judge.margin,
        },
        folder: about.folder.clone(),
        command: about.command.clone(),
        started: summary::started(machines),
        complete: summary::is_complete(machines),
        machines: environment::machines(machines),
        arms: environment::arms(plan, machines),
        cards: cards::all(study, &runs),
        figures: figures::all(study),
        remarks,
        elapsed_s: runs.iter().map(|run| run.elapsed_s).sum(),
        runs,
    }
}

#[cfg(test)]
pub(crate) mod tests;
