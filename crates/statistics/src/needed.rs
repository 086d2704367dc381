//! How many more blocks an undecided question needs, judged by the spread so far.

use super::spread::Pooled;
use super::student::factor;
use super::{Interval, number, place};

/// Nothing beyond this many blocks is worth waiting for.
pub const BLOCKS_MAX: usize = 1_000;

/// Blocks, all in all, after which an interval that errs `alpha` around `value` would clear 0 or
/// lie within `margin` (both logarithms), if the spread that is known after `done` blocks stays and
/// its freedom grows with the blocks. `None` beyond [`BLOCKS_MAX`].
pub fn blocks(
    value: f64,
    (scatter, done): (Pooled, usize),
    margin: Interval,
    alpha: f64,
) -> Option<usize> {
    let to_clear = value.abs();
    let to_fit = (margin.high - value).min(value - margin.low);
    let room = to_clear.max(to_fit);
    if room <= 0.0 {
        return None;
    }
    let freedom_a_block = scatter.freedom / number(done.max(1));
    let fits = |count: usize| {
        let freedom = number(count) * freedom_a_block;
        let reach = factor(freedom, alpha)? * scatter.spread / number(count).sqrt();
        Some(reach < room)
    };
    let normal = place((1.9 * scatter.spread / room).powi(2));
    (normal.max(3)..=BLOCKS_MAX).find(|count| fits(*count) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equivalence::bounds;

    fn after_six(spread: f64) -> (Pooled, usize) {
        let freedom = 5.0;
        (Pooled { spread, freedom }, 6)
    }

    #[test]
    fn a_quarter_of_the_effect_needs_sixteen_times_the_blocks() {
        let no_margin = Interval::between(0.0, 0.0);
        let large = blocks(0.08, after_six(0.2), no_margin, 0.05);
        let small = blocks(0.02, after_six(0.2), no_margin, 0.05);
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
        let found = blocks(0.0, after_six(0.02), bounds(0.02), 0.05);
        assert!(found.is_some_and(|blocks| blocks < 10));
        assert_eq!(blocks(0.0, after_six(0.02), bounds(0.0), 0.05), None);
    }
}
