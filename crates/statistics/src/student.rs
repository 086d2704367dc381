//! The mean of a few differences with Student's interval, which ranks cannot give below six.
//!
//! When both sides are alike the differences are symmetric, and heavy tails only widen the
//! interval. The danger of few values is a spread that happens to look tiny, and the price of being
//! wary is an interval that decides nothing. Control runs ([`super::noise`]) help against both:
//! those of the same place are counted in ([`scatter`]), those of other places are a floor.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::noise::{Noise, Origin};
use super::spread::{Pooled, mean, variance};
use super::{Estimate, Interval, number};

/// What tells how much the differences scatter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// They themselves: there are no control runs, or they scatter more than those.
    Blocks,
    /// They and the control pairs of the same place together.
    BlocksAndControls {
        /// Control pairs.
        pairs: usize,
    },
    /// Control pairs of other places, which scatter more than they do.
    Controls,
}

/// Mean of the differences with an interval that errs at most `alpha`. `None` below two values.
pub fn mean_interval(differences: &[f64], noise: Option<&Noise>, alpha: f64) -> Option<Estimate> {
    let value = mean(differences)?;
    let (scatter, _) = scatter(differences, noise)?;
    let interval = scatter.interval(value, differences.len(), alpha)?;
    Some(Estimate { value, interval })
}

/// How much one difference scatters, and what tells so. `None` below two values.
///
/// Control pairs of the same place scatter as differences do when both sides are alike: then all of
/// them together know the spread, with a degree of freedom for each pair and for each block but
/// one. Where the blocks scatter more than the controls, the other side may be the noisier one, or
/// its effect not the same in each block; what controls say does not count then. (To take them in
/// all the same would err three times as often as stated when one side is four times as noisy.)
/// Controls of other places lend no freedom.
pub fn scatter(differences: &[f64], noise: Option<&Noise>) -> Option<(Pooled, Witness)> {
    let own = Pooled {
        spread: variance(differences)?.sqrt(),
        freedom: number(differences.len() - 1),
    };
    let known = noise.map(|noise| noise.after(differences.len()));
    let Some(noise) = known.filter(|noise| noise.spread() >= own.spread) else {
        return Some((own, Witness::Blocks));
    };
    let controls = Pooled {
        spread: noise.spread(),
        freedom: number(noise.pairs()),
    };
    Some(match noise.origin() {
        Origin::Here => {
            let pairs = noise.pairs();
            (own.and(controls), Witness::BlocksAndControls { pairs })
        }
        Origin::Elsewhere => {
            let floor = Pooled {
                freedom: own.freedom,
                ..controls
            };
            (floor, Witness::Controls)
        }
    })
}

/// Welch's interval for `candidate - baseline`, two samples without pairs. `None` below two values
/// on a side.
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
        let noise = Noise::of(vec![0.02, -0.02, 0.02], Origin::Elsewhere);
        let naive = mean_interval(&differences, None, 0.05).map(|e| e.interval.contains(0.0));
        let wary =
            mean_interval(&differences, noise.as_ref(), 0.05).map(|e| e.interval.contains(0.0));
        assert_eq!((naive, wary), (Some(false), Some(true)));
    }

    #[test]
    fn controls_of_the_place_count_unless_the_blocks_scatter_more() {
        let noise = |origin| Noise::of(vec![0.03, -0.03, 0.03], origin);
        let told = |differences: &[f64], origin| scatter(differences, noise(origin).as_ref());
        let calm = [0.10, 0.12, 0.11];
        let (together, witness) = told(&calm, Origin::Here).expect("three values");
        assert_eq!(witness, Witness::BlocksAndControls { pairs: 3 });
        let expected = ((2.0 * 0.0001 + 3.0 * 0.0009) / 5.0_f64).sqrt();
        assert!((together.spread - expected).abs() < 1e-12 && together.freedom == 5.0);
        let (floor, witness) = told(&calm, Origin::Elsewhere).expect("three values");
        assert_eq!((witness, floor.freedom), (Witness::Controls, 2.0));
        assert!((floor.spread - 0.03).abs() < 1e-12);
        let wild = [0.0, 0.3, 0.1];
        for origin in [Origin::Here, Origin::Elsewhere] {
            let (own, witness) = told(&wild, origin).expect("three values");
            assert_eq!((witness, own.freedom), (Witness::Blocks, 2.0));
        }
    }
}
