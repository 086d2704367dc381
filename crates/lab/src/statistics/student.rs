//! The mean of a few differences with Student's interval, which ranks cannot give below six.
//!
//! When both sides are alike the differences are symmetric, and heavy tails only widen the interval. The danger of few
//! values is a spread that happens to look tiny: it is never believed to be below `spread_min`, which comes from control
//! runs ([`super::noise`]).

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::spread::{mean, variance};
use super::{Estimate, Interval, number};

/// Mean of the differences with an interval that errs at most `alpha`. `None` below two values.
pub fn mean_interval(differences: &[f64], spread_min: f64, alpha: f64) -> Option<Estimate> {
    let value = mean(differences)?;
    let spread = variance(differences)?.sqrt().max(spread_min);
    let freedom = number(differences.len() - 1);
    let half = factor(freedom, alpha)? * spread / number(differences.len()).sqrt();
    Some(Estimate {
        value,
        interval: Interval::between(value - half, value + half),
    })
}

/// Welch's interval for `candidate - baseline`, two samples without pairs. `None` below two values on a side.
pub fn unpaired(
    baseline: &[f64],
    candidate: &[f64],
    spread_min: f64,
    alpha: f64,
) -> Option<Estimate> {
    let part = |values: &[f64]| {
        let variance = variance(values)?.max(spread_min * spread_min);
        Some(variance / number(values.len()))
    };
    let (one, other) = (part(baseline)?, part(candidate)?);
    let value = mean(candidate)? - mean(baseline)?;
    let weights =
        one * one / number(baseline.len() - 1) + other * other / number(candidate.len() - 1);
    let freedom = if weights > 0.0 {
        (one + other).powi(2) / weights
    } else {
        1.0
    };
    let half = factor(freedom, alpha)? * (one + other).sqrt();
    Some(Estimate {
        value,
        interval: Interval::between(value - half, value + half),
    })
}

/// How many standard errors an interval that errs at most `alpha` reaches to either side.
pub fn factor(freedom: f64, alpha: f64) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(student.inverse_cdf(1.0 - alpha / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_the_tables() {
        for (freedom, expected) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (30.0, 2.042)] {
            let factor = factor(freedom, 0.05).unwrap_or(0.0);
            assert!((factor - expected).abs() < 0.001, "{factor} {expected}");
        }
    }

    #[test]
    fn three_equal_differences_prove_nothing_beyond_the_noise() {
        let differences = [0.01, 0.01, 0.01];
        let naive = mean_interval(&differences, 0.0, 0.05).map(|e| e.interval.contains(0.0));
        let wary = mean_interval(&differences, 0.02, 0.05).map(|e| e.interval.contains(0.0));
        assert_eq!((naive, wary), (Some(false), Some(true)));
    }
}
