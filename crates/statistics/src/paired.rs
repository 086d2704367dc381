//! Differences inside blocks.
//!
//! A block runs every cell once (A B, or A B B A), close in time. What slows the machine for a
//! while slows the whole block and falls out of the difference; in A B B A a steady drift falls out
//! too. Values are compared as ratios, which are differences of logarithms.

use std::collections::BTreeMap;

use super::noise::Noise;
use super::{Estimate, hodges_lehmann, number, ranks, student};

/// The differences of two sides, block by block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pairs {
    /// `ln(candidate / baseline)`, or `candidate - baseline`, in the order of blocks.
    pub differences: Vec<f64>,
    /// Blocks in which a side has no value.
    pub unpaired: usize,
}

/// `ln(candidate / baseline)` of every block that has both, a side's values of one block averaged.
/// `None` when a value is not above zero: such values have no ratio.
pub fn log_ratios(baseline: &[(u32, f64)], candidate: &[(u32, f64)]) -> Option<Pairs> {
    let above_zero = |values: &[(u32, f64)]| values.iter().all(|(_, value)| *value > 0.0);
    let logarithms = |values: &[(u32, f64)]| -> Vec<(u32, f64)> {
        values.iter().map(|(b, v)| (*b, v.ln())).collect()
    };
    (above_zero(baseline) && above_zero(candidate))
        .then(|| differences(&logarithms(baseline), &logarithms(candidate)))
}

/// `candidate - baseline` of every block that has both, a side's values of one block averaged.
pub fn differences(baseline: &[(u32, f64)], candidate: &[(u32, f64)]) -> Pairs {
    let (baseline, candidate) = (by_block(baseline), by_block(candidate));
    let both = candidate
        .iter()
        .filter_map(|(block, value)| Some(value - baseline.get(block)?));
    let differences: Vec<f64> = both.collect();
    let all = baseline.len() + candidate.len();
    Pairs {
        unpaired: all - 2 * differences.len(),
        differences,
    }
}

/// The centre of the differences with an interval that errs at most `alpha`: by exact ranks where
/// there are enough for that, else by Student with what control runs say of the spread. Which of
/// the two depends on the count alone.
pub fn interval(differences: &[f64], noise: Option<&Noise>, alpha: f64) -> Option<Estimate> {
    hodges_lehmann::paired(differences, alpha)
        .or_else(|| student::mean_interval(differences, noise, alpha))
}

/// Whether [`interval`] goes by ranks.
pub fn is_by_ranks(count: usize, alpha: f64) -> bool {
    ranks::signed_rank_outside(count, alpha).is_some()
}

fn by_block(values: &[(u32, f64)]) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for (block, value) in values {
        let sum = sums.entry(*block).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    let means = sums
        .into_iter()
        .map(|(block, (sum, count))| (block, sum / number(count)));
    means.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_falls_out_of_abba() {
        // Every run is one slower than the one before; B costs 10 more.
        let a = [(0, 1.0), (0, 4.0), (1, 5.0), (1, 8.0)];
        let b = [(0, 12.0), (0, 13.0), (1, 16.0), (1, 17.0)];
        assert_eq!(differences(&a, &b).differences, [10.0, 10.0]);
    }

    #[test]
    fn blocks_with_one_side_are_counted() {
        let pairs = log_ratios(&[(0, 1.0), (1, 1.0)], &[(1, 1.0), (2, 1.0)]);
        assert_eq!(
            pairs,
            Some(Pairs {
                differences: vec![0.0],
                unpaired: 2
            })
        );
        assert_eq!(log_ratios(&[(0, 0.0)], &[(0, 1.0)]), None);
    }
}
