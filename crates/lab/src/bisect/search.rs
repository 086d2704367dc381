//! The search itself, over anything that can be measured at a minor.
//!
//! Whether the ends differ is asked as every decision of the laboratory is: at looks that share the
//! right to err. Once they do, a minor in between is like the one or like the other, and how far
//! they are apart is known: runs are added until one of the two is so much likelier (Wald's
//! sequential test of two simple hypotheses), which takes few.

use crate::error::Result;
use crate::statistics::stopping::{Spending, judge, looks};
use crate::statistics::{Interval, paired, spread};

/// Half of the right to err of one in twenty is for the ends, half for all minors in between.
const ALPHA: f64 = 0.025;

/// How many rounds each decision may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// At most so many.
    pub of_a_decision: u32,
    /// A minor in between is judged by no fewer.
    pub of_a_minor_min: u32,
}

impl Rounds {
    /// Of a metric that depends on the machine's speed.
    pub const TIMED: Self = Self {
        of_a_decision: 12,
        of_a_minor_min: 3,
    };
    /// Of one that no clock is in.
    pub const COUNTED: Self = Self {
        of_a_decision: 3,
        of_a_minor_min: 1,
    };
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The figure changes between two minors, with nothing in between that could be had.
    Changed(Found),
    /// The ends do not differ as far as so many rounds can tell.
    Alike,
    /// The change lies between these two; one in the middle could not be told.
    Between(Found),
}

/// Two neighbours of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The last minor that is like the first of the range.
    pub last_without: u16,
    /// The first that is like the last of the range.
    pub first_with: u16,
    /// Minors between them that could not be had.
    pub missing: Vec<u16>,
    /// The last minor of the range to the first, with its interval; of values that are not all
    /// above zero there is no ratio.
    pub ratio: Option<(f64, Interval)>,
}

/// Gives the figure of a minor in a round; `None` where this minor cannot be had.
pub(super) type Measure<'a> = &'a mut dyn FnMut(u16, u32) -> Result<Option<f64>>;

/// Looks for the minor that changed the figure.
pub(super) fn search(
    (first, last): (u16, u16),
    rounds: Rounds,
    measure: Measure<'_>,
) -> Result<Outcome> {
    let mut search = Search {
        rounds,
        likelier: f64::from(halvings(first, last)) / ALPHA,
        round: 0,
        measure,
    };
    let Some(ends) = search.ends(first, last)? else {
        return Ok(Outcome::Alike);
    };
    let (mut low, mut high) = (first, last);
    let mut missing = Vec::new();
    loop {
        let Some(middle) = middle(low, high, &missing) else {
            missing.retain(|minor| (low..high).contains(minor));
            return Ok(Outcome::Changed(ends.between(low, high, missing)));
        };
        match search.side(low, middle, high, &ends)? {
            Side::Missing => missing.push(middle),
            Side::Before => low = middle,
            Side::After => high = middle,
            Side::Unclear => {
                missing.retain(|minor| (low..high).contains(minor));
                return Ok(Outcome::Between(ends.between(low, high, missing)));
            }
        }
    }
}

/// As often as the minors between the ends can be halved.
fn halvings(first: u16, last: u16) -> u32 {
    let between = u32::from(last.saturating_sub(first)).max(1);
    1 + between.ilog2()
}

/// The minor nearest to the middle that is not known to be missing.
fn middle(low: u16, high: u16, missing: &[u16]) -> Option<u16> {
    let centre = low + (high - low) / 2;
    let candidates = low.saturating_add(1)..high;
    let is_there = |minor: &u16| !missing.contains(minor);
    candidates
        .filter(is_there)
        .min_by_key(|minor| minor.abs_diff(centre))
}

/// On which side of the change a minor is.
enum Side {
    Before,
    After,
    Unclear,
    Missing,
}

/// How the ends differ.
struct Ends {
    /// 1 where the figure rises.
    sign: f64,
    /// Values are compared as logarithms.
    are_ratios: bool,
    difference: f64,
    interval: Interval,
    /// Variance of the difference of one round.
    variance: f64,
}

impl Ends {
    fn between(&self, low: u16, high: u16, missing: Vec<u16>) -> Found {
        Found {
            last_without: low,
            first_with: high,
            missing,
            ratio: self
                .are_ratios
                .then(|| (self.difference.exp(), self.interval.map(f64::exp))),
        }
    }

    fn scaled(&self, value: f64) -> f64 {
        if self.are_ratios { value.ln() } else { value }
    }
}

struct Search<'a> {
    rounds: Rounds,
    /// A minor is on the side that is so many times likelier.
    likelier: f64,
    /// Counts on over all decisions, so that each run has a number of its own.
    round: u32,
    measure: Measure<'a>,
}

impl Search<'_> {
    /// Both ends, round after round, until they differ.
    fn ends(&mut self, first: u16, last: u16) -> Result<Option<Ends>> {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for done in 1..=self.rounds.of_a_decision {
            let Some([one, other]) = self.round_of([first, last])? else {
                return Ok(None);
            };
            low.push(one);
            high.push(other);
            let are_ratios = low.iter().chain(&high).all(|value| *value > 0.0);
            let scaled = |value: &f64| if are_ratios { value.ln() } else { *value };
            let pairs = low.iter().zip(&high);
            let differences: Vec<f64> = pairs.map(|(l, h)| scaled(h) - scaled(l)).collect();
            if let Some((difference, interval)) = self.decided(&differences, done) {
                return Ok(Some(Ends {
                    sign: difference.signum(),
                    are_ratios,
                    variance: variance(&differences),
                    difference,
                    interval,
                }));
            }
        }
        Ok(None)
    }

    /// Whether a minor is nearer to the one below it or to the one above it: twice its value less
    /// the two of them rises or falls with its side.
    fn side(&mut self, low: u16, middle: u16, high: u16, ends: &Ends) -> Result<Side> {
        let mut places = Vec::new();
        for done in 1..=self.rounds.of_a_decision {
            let Some([below, own, above]) = self.round_of([low, middle, high])? else {
                return Ok(Side::Missing);
            };
            let [below, own, above] = [below, own, above].map(|value| ends.scaled(value));
            places.push(ends.sign * (2.0 * own - below - above));
            let evidence = evidence(&places, ends);
            if done >= self.rounds.of_a_minor_min && evidence.abs() >= self.likelier.ln() {
                return Ok(if evidence > 0.0 {
                    Side::After
                } else {
                    Side::Before
                });
            }
        }
        Ok(Side::Unclear)
    }

    /// One value of each minor, from the first to the last and in the next round back, so that a
    /// steady drift falls out. `None` where one cannot be had.
    fn round_of<const N: usize>(&mut self, minors: [u16; N]) -> Result<Option<[f64; N]>> {
        self.round += 1;
        let mut order: Vec<usize> = (0..N).collect();
        if self.round.is_multiple_of(2) {
            order.reverse();
        }
        let mut values = [0.0; N];
        for place in order {
            let (Some(minor), Some(value)) = (minors.get(place), values.get_mut(place)) else {
                continue;
            };
            match (self.measure)(*minor, self.round)? {
                Some(measured) => *value = measured,
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    /// The centre and its interval, once a look finds it clear of zero.
    fn decided(&self, differences: &[f64], done: u32) -> Option<(f64, Interval)> {
        let looks = looks(self.rounds.of_a_decision, ALPHA, Spending::Early);
        if !looks.iter().any(|look| look.blocks == done) {
            return None;
        }
        let interval = |part: &[f64], alpha: f64| paired::interval(part, None, alpha);
        let judged = judge(differences, &looks, &interval)?;
        let all = judged.estimate.interval;
        let is_clear = all.low > 0.0 || all.high < 0.0;
        is_clear.then_some((judged.estimate.value, all))
    }
}

/// How much likelier it is that a minor is like the end of the range than like its beginning, as a
/// logarithm. A place lies about one difference of the ends above 0 or below; it scatters as three
/// such differences do, or as the places themselves, if that is more.
fn evidence(places: &[f64], ends: &Ends) -> f64 {
    let sum: f64 = places.iter().sum();
    let scatter = (3.0 * ends.variance).max(variance(places));
    // What never differs is decided by its side alone.
    if scatter <= 0.0 {
        return if sum == 0.0 {
            0.0
        } else {
            sum.signum() * f64::INFINITY
        };
    }
    2.0 * ends.difference.abs() * sum / scatter
}

/// 0 below two values.
fn variance(values: &[f64]) -> f64 {
    spread::variance(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases of which one changes a figure, measured with noise.
    struct Planted {
        random: fastrand::Rng,
        /// The first minor that has the change.
        at: u16,
        times: f64,
        spread: f64,
        missing: Vec<u16>,
        runs: u32,
    }

    impl Planted {
        fn new(seed: u64, at: u16, times: f64, spread: f64) -> Self {
            Self {
                random: fastrand::Rng::with_seed(seed),
                at,
                times,
                spread,
                missing: Vec::new(),
                runs: 0,
            }
        }

        fn measure(&mut self, minor: u16) -> Option<f64> {
            if self.missing.contains(&minor) {
                return None;
            }
            self.runs += 1;
            // Nearly normal, on a machine that slows down steadily.
            let noise = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
            let drift = 0.001 * f64::from(self.runs);
            let change = if minor >= self.at { self.times } else { 1.0 };
            Some(100.0 * change * (noise * self.spread - drift).exp())
        }

        fn found(&mut self, rounds: Rounds) -> Outcome {
            let mut measure = |minor: u16, _: u32| Ok(self.measure(minor));
            search((0, 20), rounds, &mut measure).expect("nothing fails here")
        }
    }

    fn is_found(outcome: &Outcome, at: u16) -> bool {
        matches!(outcome, Outcome::Changed(found) if found.first_with == at && found.last_without == at - 1)
    }

    /// A tenth more or less, runs that differ by 3 %, each minor in turn as the one that changed:
    /// 19 of 20 are found, to the minor.
    #[test]
    fn a_planted_change_is_found_in_nineteen_of_twenty_searches() {
        let searches: u16 = 400;
        let found: u32 = (0..searches)
            .map(|seed| {
                let at = 1 + seed % 20;
                let times = if seed % 2 == 0 { 1.1 } else { 1.0 / 1.1 };
                let outcome = Planted::new(u64::from(seed), at, times, 0.03).found(Rounds::TIMED);
                u32::from(is_found(&outcome, at))
            })
            .sum();
        let all = u32::from(searches);
        assert!(found * 20 >= all * 19, "{found} of {all}");
    }

    #[test]
    fn no_change_is_rarely_taken_for_one() {
        let alike = |seed: u64| {
            let outcome = Planted::new(seed, 99, 1.5, 0.03).found(Rounds::TIMED);
            u32::from(outcome == Outcome::Alike)
        };
        let alike: u32 = (0..400).map(alike).sum();
        assert!(alike >= 380, "{alike} of 400");
    }

    #[test]
    fn what_no_clock_is_in_takes_few_rounds() {
        let mut planted = Planted::new(1, 7, 2.0, 0.0001);
        assert!(is_found(&planted.found(Rounds::COUNTED), 7));
        assert!(planted.runs <= 40, "{} runs", planted.runs);
    }

    #[test]
    fn a_minor_that_cannot_be_had_widens_the_answer() {
        let mut planted = Planted::new(1, 7, 2.0, 0.01);
        planted.missing = vec![7, 10];
        let Outcome::Changed(found) = planted.found(Rounds::TIMED) else {
            panic!("a change is there");
        };
        assert_eq!((found.last_without, found.first_with), (6, 8));
        assert_eq!(found.missing, [7]);
        let (times, _) = found.ratio.expect("a ratio");
        assert!((1.8..2.2).contains(&times), "{times}");
    }

    #[test]
    fn figures_of_zero_are_compared_by_difference() {
        let mut measure = |minor: u16, _: u32| Ok(Some(if minor >= 3 { 5.0 } else { 0.0 }));
        let outcome = search((0, 5), Rounds::COUNTED, &mut measure).expect("nothing fails here");
        let Outcome::Changed(found) = outcome else {
            panic!("a change is there");
        };
        assert_eq!((found.first_with, found.ratio), (3, None));
    }
}
