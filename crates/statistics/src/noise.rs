//! The noise floor: how much the very same thing differs when it is run twice in one block.
//!
//! Control cells repeat an arm under another name. The ratio of such a pair is 1 but for noise, so
//! that its mean is known and every pair is worth a degree of freedom. Like a difference of two
//! arms in a block it is a difference of two runs, so that both scatter alike when the arms do.

use super::number;

/// Fewer pairs at a place say too little of it.
pub const PAIRS_MIN: usize = 3;

/// Where control runs stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// They repeat the baseline that is judged.
    Here,
    /// They repeat other cells, whose noise may be another.
    Elsewhere,
}

/// What control runs say.
#[derive(Clone, PartialEq, Debug)]
pub struct Noise {
    /// `ln(control / same)`, in the order of blocks; never empty.
    log_ratios: Vec<f64>,
    origin: Origin,
}

impl Noise {
    /// From `ln(control / same)` of every pair, in the order of blocks. `None` for no pairs.
    pub fn of(log_ratios: Vec<f64>, origin: Origin) -> Option<Noise> {
        (!log_ratios.is_empty()).then_some(Noise { log_ratios, origin })
    }

    /// Standard deviation of the logarithm of a pair's ratio.
    pub fn spread(&self) -> f64 {
        let squares: f64 = self.log_ratios.iter().map(|ratio| ratio * ratio).sum();
        (squares / number(self.pairs())).sqrt()
    }

    /// Pairs.
    pub fn pairs(&self) -> usize {
        self.log_ratios.len()
    }

    /// Where they stood.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// What was known after so many blocks, so that a look that is taken again later is the same
    /// look.
    #[must_use]
    pub fn after(&self, blocks: usize) -> Noise {
        let mut known = self.clone();
        if self.origin == Origin::Here {
            known.log_ratios.truncate(blocks.max(1));
        }
        known
    }

    /// Two equal runs differ by more than this many times in about one case of twenty.
    pub fn times(&self) -> f64 {
        (1.96 * self.spread()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_about_two_spreads() {
        let noise = Noise::of(vec![0.01, -0.01, 0.01, -0.01], Origin::Here);
        assert!(noise.is_some_and(|noise| (noise.times() - 1.0198).abs() < 0.0001));
        assert_eq!(Noise::of(Vec::new(), Origin::Here), None);
    }

    #[test]
    fn a_look_knows_the_pairs_of_its_blocks() {
        let ratios = vec![0.01, -0.01, 0.01, 0.5];
        let pairs_after_three = |origin: Origin| {
            let noise = Noise::of(ratios.clone(), origin);
            noise.map(|noise| noise.after(3).pairs())
        };
        assert_eq!(pairs_after_three(Origin::Here), Some(3));
        assert_eq!(pairs_after_three(Origin::Elsewhere), Some(4));
    }
}
