//! Mean, variance, and the spread that several small samples share.

use super::student::factor;
use super::{Interval, number};

/// The mean. `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / number(values.len()))
}

/// The variance of what the values come from. `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    Some(squares(values, mean) / number(freedom))
}

fn squares(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// The spread of several samples together, each around its own mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pooled {
    /// Standard deviation.
    pub spread: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

/// The spread that all samples share: a curve of many points with two runs each knows it well where
/// no point does. `None` when no sample has two values.
pub fn pooled(samples: &[Vec<f64>]) -> Option<Pooled> {
    let parts = samples.iter().filter_map(|sample| {
        let centre = mean(sample)?;
        Some((squares(sample, centre), number(sample.len() - 1)))
    });
    let (squares, freedom) = parts.fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
    (freedom > 0.0).then(|| Pooled {
        spread: (squares / freedom).sqrt(),
        freedom,
    })
}

impl Pooled {
    /// What both know of the same spread.
    #[must_use]
    pub fn and(self, other: Pooled) -> Pooled {
        let freedom = self.freedom + other.freedom;
        let squares = self.spread.powi(2) * self.freedom + other.spread.powi(2) * other.freedom;
        Pooled {
            spread: (squares / freedom).sqrt(),
            freedom,
        }
    }

    /// Interval of the centre of one of the samples, `runs` values around `centre`.
    pub fn interval(self, centre: f64, runs: usize, alpha: f64) -> Option<Interval> {
        let runs = number(runs.max(1));
        let half = factor(self.freedom, alpha)? * self.spread / runs.sqrt();
        Some(Interval::between(centre - half, centre + half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_share_their_spread() {
        let samples = [vec![1.0, 3.0], vec![10.0, 12.0], vec![5.0]];
        let shared = pooled(&samples);
        assert!(
            shared.is_some_and(|p| p.freedom == 2.0 && (p.spread - 2.0_f64.sqrt()).abs() < 1e-12)
        );
        assert_eq!(pooled(&[vec![1.0], vec![]]), None);
        assert_eq!(variance(&[1.0]), None);
    }
}
