//! How many more blocks an undecided question needs, judged by the spread so far.

use super::spread::Pooled;
use super::student::factor;
use super::{Interval, number, place};

/// Nothing beyond this many blocks is worth waiting for.
pub const BLOCKS_MAX: usize = 1_000;

/// What is announced must be enough in nine of ten cases: the value that more blocks find lies this
/// many standard errors beside the true one in one case of ten.
const NINE_OF_TEN: f64 = 1.282;

/// The value of the blocks so far may be larger than the true one. It is taken for a standard error
/// less, but for no less than this share of it.
const SHARE_OF_THE_VALUE: f64 = 0.7;

/// Blocks, all in all, after which an interval that errs `alpha` clears 0 or lies within `margin`
/// (both logarithms) in nine of ten cases, if `value` is about the true one, the spread that is
/// known after `done` blocks stays and its freedom grows with the blocks. `None` beyond
/// [`BLOCKS_MAX`].
pub fn blocks(
    value: f64,
    (scatter, done): (Pooled, usize),
    margin: Interval,
    alpha: f64,
) -> Option<usize> {
    let error_so_far = scatter.spread / number(done.max(1)).sqrt();
    let to_clear = (value.abs() - error_so_far).max(SHARE_OF_THE_VALUE * value.abs());
    let to_fit = (margin.high - value).min(value - margin.low);
    let room = to_clear.max(to_fit);
    if room <= 0.0 {
        return None;
    }
    let freedom_a_block = scatter.freedom / number(done.max(1));
    let fits = |count: usize| {
        let freedom = number(count) * freedom_a_block;
        let error = scatter.spread / number(count).sqrt();
        let reach = (factor(freedom, alpha)? + NINE_OF_TEN) * error;
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
            large.is_some_and(|blocks| (120..=160).contains(&blocks)),
            "{large:?}"
        );
        assert!(small.is_none(), "{small:?}");
    }

    #[test]
    fn no_difference_is_settled_by_the_margin() {
        let found = blocks(0.0, after_six(0.02), bounds(0.02), 0.05);
        assert!(found.is_some_and(|blocks| blocks < 18));
        assert_eq!(blocks(0.0, after_six(0.02), bounds(0.0), 0.05), None);
    }
}
