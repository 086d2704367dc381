//! Runs as rows, and what the plan left out.

use pgclinic_format::calendar::{Civil, DAYS_FROM_1970_TO_2000, civil};
use pgclinic_model::document::{RunSummary, RunWord};

use super::Machine;
use super::mixed::mixed;
use crate::cell::{Cell, Outcome, RunResult};
use crate::plan::LeftOut;

/// Every planned run of every machine, in the order of its plan.
pub(super) fn runs(machines: &[Machine<'_>]) -> Vec<RunSummary> {
    let mut runs = Vec::new();
    for machine in machines {
        let (mixed, plan) = (mixed(machine), machine.plan);
        for cell in &plan.cells {
            let result = machine
                .results
                .iter()
                .find(|result| result.cell.id == cell.id);
            // A spare run that nobody needed is none that is missing.
            if result.is_some() || !plan.is_spare(cell) {
                let mut run = run(machine, cell, result);
                let other = mixed.get(&cell.id);
                run.overlaps.extend(
                    other.map(|other| format!("another server than the arm's first run: {other}")),
                );
                runs.push(run);
            }
        }
    }
    runs
}

fn run(machine: &Machine<'_>, cell: &Cell, result: Option<&RunResult>) -> RunSummary {
    let (outcome, why) = match result.map(|result| &result.outcome) {
        None => (RunWord::NotRun, None),
        Some(Outcome::Done) => (RunWord::Done, None),
        Some(Outcome::Failed { why }) => (RunWord::Failed, Some(why.clone())),
        Some(Outcome::Empty { why }) => (RunWord::Empty, Some(why.clone())),
        Some(Outcome::Skipped { why }) => (RunWord::Skipped, Some(why.clone())),
    };
    let folder = match machine.prefix {
        "" => format!("runs/{}", cell.id),
        prefix => format!("machines/{prefix}/runs/{}", cell.id),
    };
    let files = result.map_or_else(Vec::new, |result| {
        let own = std::iter::once("run.json").chain(result.files.iter().map(String::as_str));
        own.map(|file| format!("{folder}/{file}")).collect()
    });
    RunSummary {
        id: machine.id(&cell.id),
        machine: machine.name.to_owned(),
        arm: cell.arm.clone(),
        point: cell.point.clone(),
        block: cell.block,
        is_control: cell.is_control,
        outcome,
        why,
        metrics: result
            .map(|result| result.metrics.clone())
            .unwrap_or_default(),
        overlaps: result
            .map(|result| result.overlaps.clone())
            .unwrap_or_default(),
        files,
        elapsed_s: result.map_or(0.0, |result| result.elapsed_s),
    }
}

/// Every run that a machine was to make has a result, of whatever kind.
pub(super) fn is_complete(machines: &[Machine<'_>]) -> bool {
    machines.iter().all(|machine| {
        let plan = machine.plan;
        let has = |cell: &Cell| {
            machine
                .results
                .iter()
                .any(|result| result.cell.id == cell.id)
        };
        plan.cells
            .iter()
            .all(|cell| plan.is_spare(cell) || has(cell))
    })
}

/// When the first run began.
pub(super) fn started(machines: &[Machine<'_>]) -> Option<String> {
    let results = machines.iter().flat_map(|machine| machine.results);
    results.map(|result| result.started).min().map(moment)
}

/// What did not fit the budget, with the machine where it is not so on all of them.
pub(super) fn left_out(machines: &[Machine<'_>]) -> Vec<String> {
    let everywhere = |left: &LeftOut| {
        let mut all = machines.iter();
        all.all(|machine| machine.plan.left_out.contains(left))
    };
    let mut words: Vec<String> = Vec::new();
    for machine in machines {
        for left in &machine.plan.left_out {
            let place = if everywhere(left) {
                String::new()
            } else {
                format!(" on {}", machine.name)
            };
            let sentence = format!("left out of the plan{place}: {}: {}", left.what, left.why);
            if !words.contains(&sentence) {
                words.push(sentence);
            }
        }
    }
    words
}

/// Seconds since 1970 as `2026-11-21T17:00:00Z`.
fn moment(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let days = i64::try_from(days).unwrap_or(i64::MAX);
    let Civil { year, month, day } = civil(days - DAYS_FROM_1970_TO_2000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(moment(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(moment(1_795_280_461), "2026-11-21T17:01:01Z");
    }
}
