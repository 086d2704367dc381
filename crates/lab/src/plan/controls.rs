//! Which cells are run twice in a block: what differs between equal runs is the noise floor.
//!
//! The baseline of every comparison is, so that each decision knows the noise of its own place: one
//! client may be far noisier than a thousand. An experiment that compares nothing has its first arm
//! repeated at the first, the middle and the last point.

use pgclinic_model::document::Side;

use super::order::Asks;
use crate::cell::{Arm, Point};
use crate::experiment::{Experiment, Matrix};

/// The cells to repeat, each once.
pub(super) fn repeated(
    experiment: &dyn Experiment,
    matrix: &Matrix,
    points: &[Point],
    asks: Asks<'_>,
) -> Vec<Side> {
    let is_run = |side: &Side| {
        let arm = matrix.arms.iter().find(|arm| arm.name == side.arm);
        points.contains(&side.point) && arm.is_some_and(|arm| asks(arm, &side.point))
    };
    let mut sides: Vec<Side> = Vec::new();
    for comparison in experiment.comparisons(matrix) {
        if is_run(&comparison.baseline) && !sides.contains(&comparison.baseline) {
            sides.push(comparison.baseline);
        }
    }
    match (sides.is_empty(), matrix.arms.first()) {
        (true, Some(first)) => ends_and_middle(first, points, asks),
        _ => sides,
    }
}

/// First, middle and last of the points where the arm is run.
fn ends_and_middle(arm: &Arm, points: &[Point], asks: Asks<'_>) -> Vec<Side> {
    let asked: Vec<&Point> = points.iter().filter(|point| asks(arm, point)).collect();
    let last = asked.len().saturating_sub(1);
    let mut places = vec![0, last / 2, last];
    places.dedup();
    let side = |at: usize| {
        asked.get(at).map(|point| Side {
            arm: arm.name.clone(),
            point: (*point).clone(),
        })
    };
    places.into_iter().filter_map(side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{EXPERIMENTS, experiment_named};
    use crate::plan::{Plan, PlanOptions};

    #[test]
    fn every_card_knows_the_noise_of_its_own_place() {
        for experiment in EXPERIMENTS {
            let plan = Plan::make(*experiment, None, &PlanOptions::default()).expect("a plan");
            for card in experiment.comparisons(&plan.matrix) {
                let repeats = plan.cells.iter().filter(|cell| {
                    let base = &card.baseline;
                    cell.is_control && cell.arm == base.arm && cell.point == base.point
                });
                let (name, count) = (experiment.name(), u32::try_from(repeats.count()));
                assert_eq!(count, Ok(plan.matrix.blocks), "{name}: {card:?}");
            }
        }
    }

    #[test]
    fn without_comparisons_the_first_arm_is_repeated_at_both_ends_and_between() {
        let experiment = experiment_named("oauth-login").expect("it is registered");
        let mut matrix = experiment.matrix(crate::experiment::Scale::Quick);
        matrix.axes = vec![crate::cell::Axis::new("rows", "", &[1, 2, 3, 4])];
        let points = crate::plan::points::all(&matrix.axes);
        let asks = |_: &Arm, point: &Point| point["rows"] != "1";
        let sides = repeated(experiment, &matrix, &points, &asks);
        let rows: Vec<&str> = sides
            .iter()
            .map(|side| side.point["rows"].as_str())
            .collect();
        assert_eq!(rows, ["2", "3", "4"]);
        assert!(sides.iter().all(|side| side.arm == matrix.arms[0].name));
    }
}
