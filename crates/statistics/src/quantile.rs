//! Median, quantiles, and the interval of a median by ranks.

use super::ranks::coin_tail;
use super::{Interval, number, place};

/// The values in rising order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value that `share` of the sample does not exceed, interpolated between neighbours (Hyndman
/// and Fan's seventh definition, as R and NumPy do). `None` for no values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), share)
}

/// [`quantile`] of values that already rise.
pub(super) fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * number(last);
    let below = place(at).min(last);
    let above = (below + 1).min(last);
    let (low, high) = (sorted.get(below)?, sorted.get(above)?);
    Some(low + (high - low) * (at - number(below)))
}

/// The middle value. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Where the median of whatever the values come from lies, right in at least `1 - alpha` of all
/// cases whatever the distribution: by the ranks that a fair coin would give. `None` below six
/// values for an alpha of 0.05.
pub fn median_interval(values: &[f64], alpha: f64) -> Option<Interval> {
    let sorted = sorted(values);
    let count = sorted.len();
    let outside = (0..count / 2)
        .take_while(|rank| coin_tail(count, *rank) <= alpha / 2.0)
        .last()?;
    Some(Interval {
        low: *sorted.get(outside)?,
        high: *sorted.get(count - 1 - outside)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn six_values_are_the_fewest_for_one_error_in_twenty() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            median_interval(&values, 0.05),
            Some(Interval::between(1.0, 6.0))
        );
        assert_eq!(median_interval(&values[..5], 0.05), None);
    }
}
