//! Control runs against the runs that they repeat.

use super::{Observation, Observations};
use crate::cell::Point;
use crate::statistics::noise::{Noise, Origin, PAIRS_MIN};
use crate::statistics::paired::log_ratios;

/// The noise of a metric where an arm stands: by the control runs there, or, where these are too
/// few, by all of the experiment. `None` without control runs, or where a value has no ratio.
pub(super) fn at(
    observations: &Observations,
    metric: &str,
    arm: &str,
    point: &Point,
) -> Option<Noise> {
    let is_here = |control: &Observation| control.arm == arm && control.point == *point;
    let here = ratios(observations, metric, &is_here);
    if here.len() >= PAIRS_MIN {
        return Noise::of(here, Origin::Here);
    }
    everywhere(observations, metric)
}

/// The noise floor of a metric over the whole experiment.
pub(super) fn everywhere(observations: &Observations, metric: &str) -> Option<Noise> {
    Noise::of(ratios(observations, metric, &|_| true), Origin::Elsewhere)
}

/// `ln(control / same)` of the control runs that are wanted, in the order of blocks.
fn ratios(
    observations: &Observations,
    metric: &str,
    is_wanted: &dyn Fn(&Observation) -> bool,
) -> Vec<f64> {
    let mut ratios = Vec::new();
    let controls = observations.0.iter().filter(|one| one.is_control);
    for control in controls.filter(|control| is_wanted(control)) {
        let Some(again) = control.metrics.get(metric) else {
            continue;
        };
        let first = observations
            .at(&control.arm, &control.point)
            .filter(|one| one.block == control.block)
            .find_map(|one| one.metrics.get(metric));
        let pair = first.and_then(|first| log_ratios(&[(0, *first)], &[(0, *again)]));
        ratios.extend(pair.into_iter().flat_map(|pair| pair.differences));
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(clients: &str, block: u32, is_control: bool, tps: f64) -> Observation {
        Observation {
            run: String::new(),
            arm: "15.5".to_owned(),
            point: Point::from([("clients".to_owned(), clients.to_owned())]),
            block,
            is_control,
            metrics: BTreeMap::from([("tps".to_owned(), tps)]),
            elapsed_s: 1.0,
        }
    }

    /// One client is noisy, many are not; `blocks` of both.
    fn observations(blocks: u32) -> Observations {
        let of = |block: u32| {
            let wild = if block.is_multiple_of(2) { 3.0 } else { 0.3 };
            [
                run("1", block, false, 5_000.0),
                run("1", block, true, 5_000.0 * wild),
                run("1024", block, false, 25_000.0),
                run("1024", block, true, 25_250.0),
            ]
        };
        Observations((1..=blocks).flat_map(of).collect())
    }

    #[test]
    fn a_noisy_place_elsewhere_does_not_count_where_the_own_place_was_repeated() {
        let at = |blocks: u32, clients: &str| {
            let point = Point::from([("clients".to_owned(), clients.to_owned())]);
            at(&observations(blocks), "tps", "15.5", &point).expect("there are controls")
        };
        let own = at(3, "1024");
        assert_eq!((own.origin(), own.pairs()), (Origin::Here, 3));
        assert!((own.spread() - 1.01_f64.ln()).abs() < 1e-9);
        assert!(at(3, "1").times() > 5.0);
        let few = at(2, "1024");
        assert_eq!((few.origin(), few.pairs()), (Origin::Elsewhere, 4));
        assert!(few.times() > 3.0);
    }
}
