//! The noise floor: how much the very same thing differs when it is run twice in one block.
//!
//! Control cells repeat an arm under another name. The ratio of such a pair is 1 but for noise, so that its mean is known
//! and every pair is worth a degree of freedom.

use super::number;

/// What control runs say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Noise {
    /// Standard deviation of the logarithm of a pair's ratio.
    pub spread: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Noise {
    /// From `ln(control / same)` of every pair. `None` for no pairs.
    pub fn of(log_ratios: &[f64]) -> Option<Noise> {
        let squares: f64 = log_ratios.iter().map(|ratio| ratio * ratio).sum();
        (!log_ratios.is_empty()).then(|| Noise {
            spread: (squares / number(log_ratios.len())).sqrt(),
            pairs: log_ratios.len(),
        })
    }

    /// Two equal runs differ by more than this many times in about one case of twenty.
    pub fn times(self) -> f64 {
        (1.96 * self.spread).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_about_two_spreads() {
        let noise = Noise::of(&[0.01, -0.01, 0.01, -0.01]);
        assert!(noise.is_some_and(|noise| (noise.times() - 1.0198).abs() < 0.0001));
        assert_eq!(Noise::of(&[]), None);
    }
}
