//! What is left of the budget: spare blocks run only the cells whose decision is still open.
//!
//! The spare blocks are as many as the planned ones, so that the looks of the stopping rule fall on the end of the planned
//! blocks, halfway through the spare ones, and on their end: the looks are fixed beforehand, and running on where it is
//! undecided does not make errors more likely.

use pgclinic_diagnose::document::{DecisionWord, Side};

use crate::analysis::{ALPHA, About, MARGIN, Machine, document};
use crate::cell::{Cell, RunResult};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::runner::folder::RunFolder;

/// Which cells of the spare blocks are worth their time.
#[derive(Debug, Default)]
pub(super) struct Spare {
    block: u32,
    undecided: Vec<Side>,
}

impl Spare {
    /// Whether a cell of a spare block is run: its decision is open and the budget holds it.
    pub(super) fn wants(
        &mut self,
        experiment: &dyn Experiment,
        folder: &RunFolder,
        cell: &Cell,
    ) -> Result<bool> {
        let plan = folder.plan();
        let (results, _) = folder.results()?;
        let spent: f64 = results.iter().map(|result| result.elapsed_s).sum();
        let next = experiment.cost(cell, plan.scale).seconds;
        if plan.budget_s.is_none_or(|budget| spent + next > budget) {
            return Ok(false);
        }
        if self.block != cell.block {
            self.block = cell.block;
            self.undecided = undecided(experiment, plan, &results);
        }
        Ok(self.undecided.iter().any(|side| is_of(cell, side)))
    }
}

fn is_of(cell: &Cell, side: &Side) -> bool {
    let same = |(axis, value): (&String, &String)| cell.at(axis) == value;
    cell.arm == side.arm && !cell.is_control && side.point.iter().all(same)
}

/// Both sides of every card that does not tell yet.
fn undecided(experiment: &dyn Experiment, plan: &Plan, results: &[RunResult]) -> Vec<Side> {
    let machine = Machine {
        name: "",
        prefix: "",
        results,
    };
    let about = About {
        folder: String::new(),
        command: String::new(),
        alpha: ALPHA,
        margin: MARGIN,
    };
    let cards = document(experiment, plan, &[machine], &about)
        .cards
        .into_iter();
    let open = cards.filter(|card| card.word == DecisionWord::Undecided && card.effect.is_some());
    open.flat_map(|card| [card.baseline, card.candidate])
        .collect()
}
