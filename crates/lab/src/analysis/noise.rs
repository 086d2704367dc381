//! Control runs against the runs that they repeat.

use super::Observations;
use crate::statistics::noise::Noise;
use crate::statistics::paired::log_ratios;

/// The noise floor of a metric. `None` without control runs, or where a value has no ratio.
pub(super) fn floor(observations: &Observations, metric: &str) -> Option<Noise> {
    let mut ratios = Vec::new();
    for control in observations.0.iter().filter(|one| one.is_control) {
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
    Noise::of(&ratios)
}
