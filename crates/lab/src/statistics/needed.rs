//! How many more blocks an undecided question needs, judged by the spread so far.

use super::student::factor;
use super::{Estimate, Interval, number, place};

/// Nothing beyond this many blocks is worth waiting for.
pub const BLOCKS_MAX: usize = 1_000;

/// Blocks, all in all, after which an interval that errs `alpha` around `value` would clear 0 or lie within `margin`
/// (both logarithms), if the spread stays. `None` beyond [`BLOCKS_MAX`].
pub fn blocks(value: f64, spread: f64, margin: Interval, alpha: f64) -> Option<usize> {
    let to_clear = value.abs();
    let to_fit = (margin.high - value).min(value - margin.low);
    let room = to_clear.max(to_fit);
    if room <= 0.0 {
        return None;
    }
    let fits = |count: usize| {
        let reach = factor(number(count - 1), alpha)? * spread / number(count).sqrt();
        Some(reach < room)
    };
    let normal = place((1.9 * spread / room).powi(2));
    (normal.max(3)..=BLOCKS_MAX).find(|count| fits(*count) == Some(true))
}

/// The same for an estimate whose interval came from `done` blocks.
pub fn blocks_after(
    estimate: Estimate,
    done: usize,
    margin: Interval,
    alpha: f64,
) -> Option<usize> {
    let half = (estimate.interval.high - estimate.interval.low) / 2.0;
    let reach = factor(number(done.saturating_sub(1).max(1)), alpha)?;
    let spread = half * number(done.max(1)).sqrt() / reach;
    blocks(estimate.value, spread, margin, alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::equivalence::bounds;

    #[test]
    fn a_quarter_of_the_effect_needs_sixteen_times_the_blocks() {
        let no_margin = Interval::between(0.0, 0.0);
        let large = blocks(0.08, 0.2, no_margin, 0.05);
        let small = blocks(0.02, 0.2, no_margin, 0.05);
        assert!(
            large.is_some_and(|blocks| (24..=34).contains(&blocks)),
            "{large:?}"
        );
        assert!(
            small.is_some_and(|blocks| (380..=400).contains(&blocks)),
            "{small:?}"
        );
    }

    #[test]
    fn no_difference_is_settled_by_the_margin() {
        assert!(blocks(0.0, 0.02, bounds(0.02), 0.05).is_some_and(|blocks| blocks < 10));
        assert_eq!(blocks(0.0, 0.02, bounds(0.0), 0.05), None);
    }
}
