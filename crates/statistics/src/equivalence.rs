//! Equivalence by two one-sided tests: both "smaller than the margin" and "larger than the margin"
//! must be refuted.
//!
//! That is the case exactly when the interval that errs `2 alpha` lies within the margin. Ratios
//! between `1 - margin` and `1 / (1 - margin)` are within: the same distance on either side once
//! logarithms are taken, so that the answer does not depend on which side is called the baseline.

use super::Interval;

/// Logarithms of ratios that count as no difference.
pub fn bounds(margin: f64) -> Interval {
    let low = (1.0 - margin.clamp(0.0, 0.99)).ln();
    Interval { low, high: -low }
}

/// The interval of a log ratio, made with `2 alpha`, proves that the difference is below the
/// margin.
pub fn holds(log_ratio: Interval, margin: f64) -> bool {
    margin > 0.0 && log_ratio.is_within(bounds(margin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_must_be_within() {
        assert!(holds(Interval::between(-0.01, 0.015), 0.02));
        assert!(!holds(Interval::between(-0.01, 0.03), 0.02));
        assert!(!holds(Interval::between(0.0, 0.0), 0.0));
    }
}
