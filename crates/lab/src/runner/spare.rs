//! What is left of the budget: spare blocks run only the cells whose decision is still open, the
//! most uncertain first.
//!
//! The spare blocks are as many as the planned ones, so that the looks of the stopping rule fall on
//! the end of the planned blocks, halfway through the spare ones, and on their end: the looks are
//! fixed beforehand, and running on where it is undecided does not make errors more likely.

use pgclinic_model::document::{DecisionCard, DecisionWord, Side};

use crate::analysis::{About, Judge, Machine, document};
use crate::cell::{Cell, RunResult};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::runner::folder::RunFolder;
use crate::runner::overrun::{pace, spent};

/// Which cells of the spare blocks are worth their time.
#[derive(Debug)]
pub(super) struct BudgetRemainder {
    judge: Judge,
    block: u32,
    chosen: Vec<Side>,
}

impl BudgetRemainder {
    /// Decisions are open or not as the person judges.
    pub(super) fn new(judge: Judge) -> Self {
        Self {
            judge,
            block: 0,
            chosen: Vec::new(),
        }
    }

    /// Whether a cell of a spare block is run: its decision is open, and the budget holds it beside
    /// what is more uncertain.
    pub(super) fn wants(
        &mut self,
        experiment: &dyn Experiment,
        folder: &RunFolder,
        cell: &Cell,
    ) -> Result<bool> {
        let plan = folder.plan();
        let Some(budget) = plan.budget_s else {
            return Ok(false);
        };
        let (results, _) = folder.results()?;
        let left = budget - spent(&results);
        let pace = pace(experiment, plan, &results);
        let cost = |cell: &Cell| experiment.cost(cell, plan.scale).seconds * pace;
        if self.block != cell.block {
            self.block = cell.block;
            let open = open_cards(experiment, plan, &results, self.judge);
            let block = plan.cells.iter().filter(|other| other.block == cell.block);
            self.chosen = fitting(&open, &block.collect::<Vec<_>>(), left, &cost);
        }
        let is_chosen = self.chosen.iter().any(|side| is_of(cell, side));
        Ok(is_chosen && cost(cell) <= left)
    }
}

fn is_of(cell: &Cell, side: &Side) -> bool {
    let same = |(axis, value): (&String, &String)| cell.at(axis) == value;
    cell.arm == side.arm && !cell.is_control && side.point.iter().all(same)
}

/// Both sides of the cards that fit into the seconds that are left, in the order of the cards.
fn fitting(
    open: &[DecisionCard],
    block: &[&Cell],
    left: f64,
    cost: &dyn Fn(&Cell) -> f64,
) -> Vec<Side> {
    let (mut chosen, mut left): (Vec<Side>, f64) = (Vec::new(), left);
    for card in open {
        let sides = [&card.baseline, &card.candidate];
        let is_new = |cell: &&&Cell| {
            sides.iter().any(|side| is_of(cell, side))
                && !chosen.iter().any(|side| is_of(cell, side))
        };
        let more: f64 = block.iter().filter(is_new).map(|cell| cost(cell)).sum();
        if more <= left {
            left -= more;
            chosen.extend(sides.into_iter().cloned());
        }
    }
    chosen
}

/// Every card that does not tell yet, the most uncertain first.
fn open_cards(
    experiment: &dyn Experiment,
    plan: &Plan,
    results: &[RunResult],
    judge: Judge,
) -> Vec<DecisionCard> {
    let machine = Machine {
        name: "",
        prefix: "",
        plan,
        results,
    };
    let about = About {
        folder: String::new(),
        command: String::new(),
        judge,
    };
    let mut cards = document(experiment, plan, &[machine], &about).cards;
    cards.retain(|card| card.word == DecisionWord::Undecided && card.effect.is_some());
    // Among equals the more important stays in front.
    cards.sort_by(|one, other| uncertainty(other).total_cmp(&uncertainty(one)));
    cards
}

/// How many times the upper end of the interval is its lower end, as a logarithm; what has no
/// interval is wholly open.
fn uncertainty(card: &DecisionCard) -> f64 {
    let interval = card
        .effect
        .as_ref()
        .and_then(|effect| effect.times_interval);
    let width = interval.map_or(f64::INFINITY, |[low, high]| (high / low).ln());
    if width.is_nan() { f64::INFINITY } else { width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Made, result};
    use crate::plan::PlanOptions;

    fn plan() -> Plan {
        let options = PlanOptions {
            minutes: Some(10.0),
            ..PlanOptions::default()
        };
        Plan::make(&Made, None, &options).expect("a plan")
    }

    /// Results of the planned blocks whose arms are alike but for so much noise.
    fn alike(plan: &Plan, noise: f64) -> Vec<RunResult> {
        let cells = plan.cells.iter().filter(|cell| !plan.is_spare(cell));
        let noisy = cells.map(|cell| {
            let of_arm = if cell.arm == "14" { 2.0 } else { 4.0 };
            let sign = [1.0, -1.0][usize::from(cell.arm == "14" && cell.block % 2 == 0)];
            let sign = if cell.arm == "14" { sign } else { 0.0 };
            let mut result = result(cell, 4.0 / of_arm * (1.0 + sign * noise));
            result.elapsed_s = 1.0;
            result
        });
        noisy.collect()
    }

    #[test]
    fn whether_a_card_is_open_depends_on_the_margin_that_was_named() {
        let plan = plan();
        let results = alike(&plan, 0.05);
        let open = |margin: f64| {
            let judge = Judge {
                margin,
                ..Judge::default()
            };
            open_cards(&Made, &plan, &results, judge).len()
        };
        assert_eq!((open(0.02), open(0.4)), (1, 0));
    }

    #[test]
    fn the_most_uncertain_gets_the_time_that_is_left() {
        let card = |arm: &str, interval: Option<[f64; 2]>| {
            let plan = plan();
            let made = open_cards(&Made, &plan, &alike(&plan, 0.05), Judge::default());
            let mut card = made.into_iter().next().expect("an open card");
            card.candidate.arm = arm.to_owned();
            if let Some(effect) = &mut card.effect {
                effect.times_interval = interval;
            }
            card
        };
        let (sure, unsure, unknown) = (
            card("sure", Some([0.99, 1.02])),
            card("unsure", Some([0.5, 2.0])),
            card("unknown", None),
        );
        assert!(uncertainty(&unknown) > uncertainty(&unsure));
        assert!(uncertainty(&unsure) > uncertainty(&sure));

        let cells: Vec<Cell> = ["13", "sure", "unsure"]
            .map(|arm| cell(&unsure, arm))
            .into();
        let cells: Vec<&Cell> = cells.iter().collect();
        let chosen = |left: f64| {
            let sides = fitting(&[unsure.clone(), sure.clone()], &cells, left, &|_| 10.0);
            sides.into_iter().map(|side| side.arm).collect::<Vec<_>>()
        };
        assert_eq!(chosen(25.0), ["13", "unsure"]);
        assert_eq!(chosen(30.0), ["13", "unsure", "13", "sure"]);
        assert!(chosen(5.0).is_empty());
    }

    /// A cell of this arm where the card compares.
    fn cell(card: &DecisionCard, arm: &str) -> Cell {
        Cell {
            id: arm.to_owned(),
            arm: arm.to_owned(),
            point: card.baseline.point.clone(),
            block: 5,
            repeat: 0,
            is_control: false,
        }
    }
}
