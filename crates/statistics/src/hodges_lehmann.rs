//! Hodges and Lehmann's difference: the median of all pairwise differences, with an interval by
//! exact ranks.
//!
//! A third of the values may be wild without moving it far, and the interval asks nothing of the
//! distribution but that the sides differ by a shift. On logarithms the shift is a ratio.

use super::quantile::{median, sorted};
use super::ranks::{rank_sum_outside, signed_rank_outside};
use super::{Estimate, Interval};

/// The centre of differences that were taken in pairs: the median of all means of two. `None` where
/// so few cannot bear `alpha` (below six for 0.05).
pub fn paired(differences: &[f64], alpha: f64) -> Option<Estimate> {
    let outside = signed_rank_outside(differences.len(), alpha)?;
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (at, one) in differences.iter().enumerate() {
        means.extend(
            differences[at..]
                .iter()
                .map(|other| f64::midpoint(*one, *other)),
        );
    }
    estimate(&means, outside)
}

/// By how much `candidate` lies above `baseline`, two samples without pairs. `None` where so few
/// cannot bear `alpha` (below four and four for 0.05).
pub fn unpaired(baseline: &[f64], candidate: &[f64], alpha: f64) -> Option<Estimate> {
    let outside = rank_sum_outside(baseline.len(), candidate.len(), alpha)?;
    let differences = candidate
        .iter()
        .flat_map(|one| baseline.iter().map(move |other| one - other));
    estimate(&differences.collect::<Vec<_>>(), outside)
}

fn estimate(candidates: &[f64], outside: usize) -> Option<Estimate> {
    let sorted = sorted(candidates);
    let opposite = sorted.len().checked_sub(outside + 1)?;
    Some(Estimate {
        value: median(&sorted)?,
        interval: Interval::between(*sorted.get(outside)?, *sorted.get(opposite)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_value_moves_little() {
        let calm = paired(&[1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02], 0.05).map(|e| e.value);
        let wild = paired(&[1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 900.0], 0.05).map(|e| e.value);
        let moved = calm.zip(wild).map(|(calm, wild)| wild - calm);
        assert!(moved.is_some_and(|moved| moved < 0.05), "{moved:?}");
    }

    #[test]
    fn a_shift_is_found_between_samples() {
        let baseline = [1.0, 2.0, 3.0, 4.0, 5.0];
        let candidate = [11.0, 12.0, 13.0, 14.0, 15.0];
        let shift = unpaired(&baseline, &candidate, 0.05);
        assert!(shift.is_some_and(|shift| shift.value == 10.0 && shift.interval.contains(10.0)));
    }
}
