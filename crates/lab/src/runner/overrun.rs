//! Planned blocks that the budget does not hold after all: where runs take longer than was
//! estimated, whole last blocks are dropped, so that the time that was given is kept and what
//! remains is complete blocks.
//!
//! Which blocks are dropped follows from the time that runs take, never from what they measured.

use crate::cell::{Cell, RunResult};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::runner::folder::RunFolder;
use crate::runner::journal::{Entry, Event};

/// How many times longer than estimated the runs took that are done; 1 before any is.
pub(super) fn pace(experiment: &dyn Experiment, plan: &Plan, results: &[RunResult]) -> f64 {
    let done = results.iter().filter(|result| result.is_done());
    let (cells, seconds): (Vec<Cell>, Vec<f64>) = done
        .map(|result| (result.cell.clone(), result.elapsed_s))
        .unzip();
    let estimated = plan.price_of(experiment, &cells).seconds;
    if cells.is_empty() || estimated <= 0.0 {
        1.0
    } else {
        seconds.iter().sum::<f64>() / estimated
    }
}

/// Seconds that results have taken.
pub(super) fn spent(results: &[RunResult]) -> f64 {
    results.iter().map(|result| result.elapsed_s).sum()
}

/// Looks at each planned block when its first cell comes.
#[derive(Debug, Default)]
pub(super) struct Overrun {
    block: u32,
    dropped_from: Option<u32>,
}

impl Overrun {
    /// Whether a planned cell is dropped. The first block that is dropped is told to the journal,
    /// and in words.
    pub(super) fn drops(
        &mut self,
        experiment: &dyn Experiment,
        folder: &RunFolder,
        cell: &Cell,
        tell: &mut dyn FnMut(&str),
    ) -> Result<bool> {
        let plan = folder.plan();
        if plan.is_spare(cell) {
            return Ok(self.dropped_from.is_some());
        }
        if self.block != cell.block && self.dropped_from.is_none() {
            self.block = cell.block;
            let (results, _) = folder.results()?;
            if let Some(why) = too_long(experiment, plan, &results, cell.block) {
                folder.journal(&Entry::of_blocks(cell.block, &why))?;
                let gone = plan.planned_blocks() + 1 - cell.block;
                tell(&format!("the last {gone} blocks are dropped: {why}"));
                self.dropped_from = Some(cell.block);
            }
        }
        Ok(self.dropped_from.is_some())
    }
}

/// Why a block that nothing of is done would end after the budget. The first block is always run.
fn too_long(
    experiment: &dyn Experiment,
    plan: &Plan,
    results: &[RunResult],
    block: u32,
) -> Option<String> {
    let budget = plan.budget_s?;
    let begun = results.iter().any(|result| result.cell.block == block);
    if block <= 1 || begun {
        return None;
    }
    let cells = plan.cells.iter().filter(|cell| cell.block == block);
    let estimated: f64 = cells
        .map(|cell| experiment.cost(cell, plan.scale).seconds)
        .sum();
    let pace = pace(experiment, plan, results);
    let end = spent(results) + estimated * pace;
    (end > budget).then(|| {
        format!(
            "runs take {pace:.1} times as long as was estimated, and block {block} would end after {:.1} of {:.1} minutes",
            end / 60.0,
            budget / 60.0
        )
    })
}

/// The first block that the last work in a folder dropped, and why.
pub(super) fn dropped(history: &[Entry]) -> Option<(u32, String)> {
    let begins = |entry: &Entry| matches!(entry.event, Event::Began | Event::Resumed);
    let last = history.iter().rev().take_while(|entry| !begins(entry));
    let mut dropped = last.filter(|entry| entry.event == Event::Dropped);
    let entry = dropped.next()?;
    Some((entry.block?, entry.outcome.clone().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Made, result};
    use crate::plan::PlanOptions;

    /// A plan of four blocks of nine runs, estimated at a second each, in two minutes.
    fn plan() -> Plan {
        let options = PlanOptions {
            minutes: Some(2.0),
            ..PlanOptions::default()
        };
        Plan::make(&Made, None, &options).expect("a plan")
    }

    /// What is dropped when each run takes `seconds`, block by block.
    fn dropped_at(seconds: f64) -> (Vec<u32>, Plan) {
        let home = tempfile::tempdir().expect("a directory");
        let folder = RunFolder::create(home.path(), plan()).expect("a run directory");
        folder
            .journal(&Entry::new(Event::Began))
            .expect("a journal");
        let mut overrun = Overrun::default();
        let mut dropped = Vec::new();
        for cell in folder.plan().cells.clone() {
            let is_dropped = overrun.drops(&Made, &folder, &cell, &mut |_| {});
            if is_dropped.expect("a directory that can be read") {
                dropped.push(cell.block);
                continue;
            }
            if folder.plan().is_spare(&cell) {
                continue;
            }
            let part = folder.begin_run(&cell).expect("a directory");
            let mut result = result(&cell, 1.0);
            result.elapsed_s = seconds;
            folder.end_run(&part, &result).expect("a result");
        }
        dropped.dedup();
        (dropped, folder.plan_as_run())
    }

    #[test]
    fn whole_last_blocks_are_dropped_where_estimates_were_too_low() {
        let planned = plan().planned_blocks();
        let (dropped, as_run) = dropped_at(1.0);
        assert!(dropped.is_empty(), "{dropped:?}");
        assert_eq!(as_run.matrix.blocks, plan().matrix.blocks);

        let (dropped, as_run) = dropped_at(6.0);
        assert_eq!(dropped.first(), Some(&3), "two blocks take 108 of 120 s");
        assert_eq!((planned, as_run.matrix.blocks), (4, 2));
        assert!(as_run.cells.iter().all(|cell| cell.block < 3));
        let left = as_run.left_out.last().expect("something was left out");
        assert_eq!(left.what, "2 of 4 blocks");
        assert!(
            left.why.contains("times as long as was estimated"),
            "{}",
            left.why
        );
    }
}
