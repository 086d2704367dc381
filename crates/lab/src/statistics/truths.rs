//! Known truths: simulated experiments whose answer is known, a thousand at a time.

use super::bootstrap;
use super::equivalence::{self, bounds};
use super::paired;
use super::quantile::{median, median_interval};
use super::stopping::{Judged, judge, looks};
use super::theil_sen::slope_interval;
use super::{Interval, hodges_lehmann, number, student};

const ALPHA: f64 = 0.05;
const EXPERIMENTS: u32 = 1_000;
/// A thousand draws of 0.95 lie above this but for one case in a thousand.
const COVERED_MIN: f64 = 0.928;

/// How the noise of one run is distributed.
#[derive(Clone, Copy, Debug)]
enum Tail {
    /// Even, without tails.
    Flat,
    /// Nearly normal.
    Normal,
    /// One run in ten is slower by far, as under a checkpoint.
    Spikes,
}

const TAILS: [Tail; 3] = [Tail::Flat, Tail::Normal, Tail::Spikes];

struct Bench {
    random: fastrand::Rng,
    tail: Tail,
    spread: f64,
}

impl Bench {
    fn new(seed: u32, tail: Tail, spread: f64) -> Self {
        let random = fastrand::Rng::with_seed(u64::from(seed));
        Bench {
            random,
            tail,
            spread,
        }
    }

    /// Between -1 and 1.
    fn even(&mut self) -> f64 {
        self.random.f64() * 2.0 - 1.0
    }

    /// Mean 0, variance 1, nearly normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0
    }

    fn noise(&mut self) -> f64 {
        let noise = match self.tail {
            Tail::Flat => self.even() * 3.0_f64.sqrt(),
            Tail::Normal => self.normal(),
            Tail::Spikes if self.random.u8(..10) == 0 => 5.0 + self.normal(),
            Tail::Spikes => self.normal() * 0.5,
        };
        noise * self.spread
    }

    /// Log ratios of blocks whose level wanders widely, with a true ratio.
    fn differences(&mut self, blocks: u32, ratio: f64) -> Vec<f64> {
        let mut baseline = Vec::new();
        let mut candidate = Vec::new();
        for block in 0..blocks {
            let level = 100.0 * (0.5 * self.normal()).exp();
            baseline.push((block, level * self.noise().exp()));
            candidate.push((block, level * ratio * self.noise().exp()));
        }
        paired::log_ratios(&baseline, &candidate).map_or_else(Vec::new, |pairs| pairs.differences)
    }
}

/// A whole experiment with its looks, as a decision makes it.
fn experiment(bench: &mut Bench, blocks: u32, ratio: f64) -> Option<Judged> {
    let differences = bench.differences(blocks, ratio);
    let floor = bench.spread * 0.5;
    let interval = |part: &[f64], alpha: f64| paired::interval(part, floor, alpha);
    judge(&differences, &looks(blocks, ALPHA), &interval)
}

fn share(count: u32) -> f64 {
    f64::from(count) / f64::from(EXPERIMENTS)
}

/// How often a thousand experiments fulfil something.
fn count(mut holds: impl FnMut(u32) -> bool) -> f64 {
    share((0..EXPERIMENTS).map(|seed| u32::from(holds(seed))).sum())
}

#[test]
fn equal_sides_are_rarely_called_different() {
    for tail in TAILS {
        for blocks in [3, 6, 12] {
            let wrong = count(|seed| {
                let judged = experiment(&mut Bench::new(seed, tail, 0.05), blocks, 1.0);
                judged.is_some_and(|judged| !judged.estimate.interval.contains(0.0))
            });
            assert!(wrong <= ALPHA, "{tail:?}, {blocks} blocks: {wrong}");
        }
    }
}

/// What the looks are for: without them, this happens.
#[test]
fn stopping_at_the_first_difference_would_cheat() {
    let wrong = count(|seed| {
        let differences = Bench::new(seed, Tail::Normal, 0.05).differences(40, 1.0);
        (6..=40).any(|blocks| {
            let estimate = paired::interval(&differences[..blocks], 0.0, ALPHA);
            estimate.is_some_and(|estimate| !estimate.interval.contains(0.0))
        })
    });
    assert!(wrong > 2.0 * ALPHA, "{wrong}");
}

#[test]
fn ten_percent_are_found() {
    for tail in TAILS {
        let found = count(|seed| {
            let judged = experiment(&mut Bench::new(seed, tail, 0.03), 12, 1.1);
            judged.is_some_and(|judged| judged.estimate.interval.low > 0.0)
        });
        assert!(found >= 0.9, "{tail:?}: {found}");
    }
}

#[test]
fn equivalence_is_proved_when_true_and_not_at_the_margin() {
    let proved = |ratio: f64, spread: f64| {
        count(|seed| {
            let judged = experiment(&mut Bench::new(seed, Tail::Normal, spread), 12, ratio);
            judged.is_some_and(|judged| equivalence::holds(judged.wider_alpha, 0.05))
        })
    };
    let (equal, at_margin) = (proved(1.0, 0.02), proved(bounds(0.05).high.exp(), 0.02));
    assert!(equal >= 0.9, "{equal}");
    assert!(at_margin <= ALPHA, "{at_margin}");
}

#[test]
fn intervals_of_differences_cover_the_truth() {
    let truth = 1.3_f64.ln();
    for tail in TAILS {
        for blocks in [4, 8, 20] {
            let covered = count(|seed| {
                let differences = Bench::new(seed, tail, 0.05).differences(blocks, 1.3);
                let estimate = paired::interval(&differences, 0.02, ALPHA);
                estimate.is_some_and(|estimate| estimate.interval.contains(truth))
            });
            assert!(
                covered >= COVERED_MIN,
                "{tail:?}, {blocks} blocks: {covered}"
            );
        }
    }
}

fn two_samples(seed: u32, sizes: (usize, usize)) -> (Vec<f64>, Vec<f64>) {
    let mut bench = Bench::new(seed, Tail::Normal, 1.0);
    let one = (0..sizes.0).map(|_| bench.noise()).collect();
    let other = (0..sizes.1).map(|_| 2.0 + bench.noise()).collect();
    (one, other)
}

#[test]
fn intervals_without_pairs_cover_the_truth() {
    let ranks = count(|seed| {
        let (one, other) = two_samples(seed, (6, 8));
        hodges_lehmann::unpaired(&one, &other, ALPHA).is_some_and(|e| e.interval.contains(2.0))
    });
    let welch = count(|seed| {
        let (one, other) = two_samples(seed, (3, 3));
        student::unpaired(&one, &other, 0.0, ALPHA).is_some_and(|e| e.interval.contains(2.0))
    });
    assert!(
        ranks >= COVERED_MIN && welch >= COVERED_MIN,
        "{ranks} {welch}"
    );
}

fn bootstrapped(seed: u32, figure: bootstrap::Figure<'_>) -> Option<Interval> {
    let mut bench = Bench::new(seed, Tail::Normal, 1.0);
    let sample: Vec<f64> = (0..15).map(|_| 10.0 + bench.noise()).collect();
    bootstrap::interval(&[sample], figure, ALPHA, 300, u64::from(seed)).map(|e| e.interval)
}

#[test]
fn bootstrap_intervals_cover_about_what_they_state() {
    let middle = |samples: &[Vec<f64>]| median(&samples[0]).unwrap_or(f64::NAN);
    let mean = |samples: &[Vec<f64>]| samples[0].iter().sum::<f64>() / number(samples[0].len());
    for figure in [&middle as bootstrap::Figure<'_>, &mean] {
        let covered = count(|seed| bootstrapped(seed, figure).is_some_and(|i| i.contains(10.0)));
        assert!((0.91..=0.98).contains(&covered), "{covered}");
    }
}

#[test]
fn intervals_of_medians_and_slopes_cover_the_truth() {
    let medians = count(|seed| {
        let mut bench = Bench::new(seed, Tail::Normal, 1.0);
        let sample: Vec<f64> = (0..9).map(|_| bench.noise()).collect();
        median_interval(&sample, ALPHA).is_some_and(|interval| interval.contains(0.0))
    });
    let slopes = count(|seed| {
        let mut bench = Bench::new(seed, Tail::Normal, 5.0);
        let points: Vec<[f64; 2]> = (0..15)
            .map(|x| [f64::from(x), 3.0 * f64::from(x) + bench.noise()])
            .collect();
        slope_interval(&points, ALPHA).is_some_and(|e| e.interval.contains(3.0))
    });
    assert!(
        medians >= COVERED_MIN && slopes >= COVERED_MIN,
        "{medians} {slopes}"
    );
}
