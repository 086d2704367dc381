//! Known truths: simulated experiments whose answer is known, a thousand at a time.

use super::bootstrap;
use super::equivalence::{self, bounds};
use super::noise::{Noise, Origin};
use super::paired;
use super::quantile::{median, median_interval};
use super::stopping::{Judged, Spending, judge, looks};
use super::theil_sen::slope_interval;
use super::{Interval, hodges_lehmann, number, student};

const ALPHA: f64 = 0.05;
const EXPERIMENTS: u32 = 1_000;
/// Where a rate of nearly 4 % is held to 5 %, a thousand would say too little.
const EQUAL_EXPERIMENTS: u32 = 4_000;
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
    /// Now and then one is wild to either side: a ratio of two normal numbers, cut off.
    Wild,
}

const TAILS: [Tail; 4] = [Tail::Flat, Tail::Normal, Tail::Spikes, Tail::Wild];

struct Bench {
    random: fastrand::Rng,
    tail: Tail,
    spread: f64,
    /// How many times noisier the candidate is.
    candidate: f64,
}

/// What blocks gave, as logarithms of ratios.
struct Blocks {
    /// Candidate to baseline.
    differences: Vec<f64>,
    /// The baseline's second run to its first.
    controls: Vec<f64>,
}

impl Bench {
    fn new(seed: u32, tail: Tail, spread: f64) -> Self {
        let random = fastrand::Rng::with_seed(u64::from(seed));
        Bench {
            random,
            tail,
            spread,
            candidate: 1.0,
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
            Tail::Wild => (self.normal() / self.normal()).clamp(-8.0, 8.0) * 0.5,
        };
        noise * self.spread
    }

    /// Blocks whose level wanders widely, with a true ratio; the baseline runs twice in each.
    fn blocks(&mut self, blocks: u32, ratio: f64) -> Blocks {
        let mut runs: [Vec<(u32, f64)>; 3] = Default::default();
        for block in 0..blocks {
            let level = 100.0 * (0.5 * self.normal()).exp();
            let values = [
                level * self.noise().exp(),
                level * self.noise().exp(),
                level * ratio * (self.noise() * self.candidate).exp(),
            ];
            for (runs, value) in runs.iter_mut().zip(values) {
                runs.push((block, value));
            }
        }
        let [baseline, again, candidate] = runs;
        let to_baseline = |side: &[(u32, f64)]| {
            let pairs = paired::log_ratios(&baseline, side);
            pairs.map_or_else(Vec::new, |pairs| pairs.differences)
        };
        Blocks {
            differences: to_baseline(&candidate),
            controls: to_baseline(&again),
        }
    }

    fn differences(&mut self, blocks: u32, ratio: f64) -> Vec<f64> {
        self.blocks(blocks, ratio).differences
    }
}

/// How an experiment is judged.
#[derive(Clone, Copy)]
struct Rules {
    blocks: u32,
    alpha: f64,
    spending: Spending,
}

/// One card at the level that is usual, of a plan that runs to its end.
fn late(blocks: u32) -> Rules {
    Rules {
        blocks,
        alpha: ALPHA,
        spending: Spending::Late,
    }
}

/// A whole experiment with its controls and looks, as a decision makes it.
fn experiment(bench: &mut Bench, rules: Rules, ratio: f64) -> Option<Judged> {
    let made = bench.blocks(rules.blocks, ratio);
    judged(&made, rules, Noise::of(made.controls.clone(), Origin::Here))
}

fn judged(made: &Blocks, rules: Rules, noise: Option<Noise>) -> Option<Judged> {
    let interval = |part: &[f64], alpha: f64| paired::interval(part, noise.as_ref(), alpha);
    let looks = looks(rules.blocks, rules.alpha, rules.spending);
    judge(&made.differences, &looks, &interval)
}

fn is_above(judged: Option<Judged>) -> bool {
    judged.is_some_and(|judged| judged.estimate.interval.low > 0.0)
}

/// How often a thousand experiments fulfil something.
fn count(holds: impl FnMut(u32) -> bool) -> f64 {
    count_among(EXPERIMENTS, holds)
}

fn count_among(experiments: u32, mut holds: impl FnMut(u32) -> bool) -> f64 {
    let all: u32 = (0..experiments).map(|seed| u32::from(holds(seed))).sum();
    f64::from(all) / f64::from(experiments)
}

#[test]
fn equal_sides_are_rarely_called_different() {
    for tail in TAILS {
        for blocks in [3, 4, 6, 12] {
            for spending in [Spending::Early, Spending::Late] {
                let rules = Rules {
                    spending,
                    ..late(blocks)
                };
                let wrong = count_among(EQUAL_EXPERIMENTS, |seed| {
                    let judged = experiment(&mut Bench::new(seed, tail, 0.05), rules, 1.0);
                    judged.is_some_and(|judged| !judged.estimate.interval.contains(0.0))
                });
                assert!(wrong <= ALPHA, "{tail:?}, {blocks} blocks: {wrong}");
            }
        }
    }
}

/// The right to err of one card among twelve.
#[test]
fn pages_of_many_cards_are_rarely_wrong_anywhere() {
    for tail in TAILS {
        for blocks in [3, 6] {
            let rules = Rules {
                alpha: ALPHA / 12.0,
                ..late(blocks)
            };
            let wrong = count(|seed| {
                let mut bench = Bench::new(seed, tail, 0.05);
                (0..12).any(|_| {
                    let judged = experiment(&mut bench, rules, 1.0);
                    judged.is_some_and(|judged| !judged.estimate.interval.contains(0.0))
                })
            });
            assert!(wrong <= ALPHA, "{tail:?}, {blocks} blocks: {wrong}");
        }
    }
}

/// Controls repeat the baseline: of a candidate with more noise they know too little, and must not
/// be believed.
#[test]
fn a_noisier_candidate_is_not_judged_by_the_calm_of_the_controls() {
    for tail in TAILS {
        for blocks in [3, 6] {
            let covered = count(|seed| {
                let mut bench = Bench::new(seed, tail, 0.05);
                bench.candidate = 2.0;
                let judged = experiment(&mut bench, late(blocks), 1.0);
                judged.is_some_and(|judged| judged.estimate.interval.contains(0.0))
            });
            assert!(
                covered >= COVERED_MIN,
                "{tail:?}, {blocks} blocks: {covered}"
            );
        }
    }
}

/// What the looks are for: without them, this happens.
#[test]
fn stopping_at_the_first_difference_would_cheat() {
    let wrong = count(|seed| {
        let differences = Bench::new(seed, Tail::Normal, 0.05).differences(40, 1.0);
        (6..=40).any(|blocks| {
            let estimate = paired::interval(&differences[..blocks], None, ALPHA);
            estimate.is_some_and(|estimate| !estimate.interval.contains(0.0))
        })
    });
    assert!(wrong > 2.0 * ALPHA, "{wrong}");
}

#[test]
fn ten_percent_are_found() {
    for tail in TAILS {
        let found =
            count(|seed| is_above(experiment(&mut Bench::new(seed, tail, 0.03), late(12), 1.1)));
        assert!(found >= 0.9, "{tail:?}: {found}");
    }
}

/// What quick runs hold: six blocks, three cards on the page, runs that differ by 3 %.
#[test]
fn ten_percent_are_found_by_a_quick_run() {
    let rules = Rules {
        alpha: ALPHA / 3.0,
        ..late(6)
    };
    for (tail, enough) in [
        (Tail::Flat, 0.85),
        (Tail::Normal, 0.85),
        (Tail::Spikes, 0.5),
    ] {
        let found =
            count(|seed| is_above(experiment(&mut Bench::new(seed, tail, 0.03), rules, 1.1)));
        assert!(found >= enough, "{tail:?}: {found}");
    }
}

#[test]
fn noise_elsewhere_widens_nothing_and_controls_here_help() {
    let found = |noise: &dyn Fn(&Blocks) -> Option<Noise>| {
        count(|seed| {
            let made = Bench::new(seed, Tail::Normal, 0.03).blocks(3, 1.1);
            is_above(judged(&made, late(3), noise(&made)))
        })
    };
    let here = found(&|made| Noise::of(made.controls.clone(), Origin::Here));
    let alone = found(&|_| None);
    // What was done with the controls of a place ten times as noisy, before each place had its own.
    let elsewhere = found(&|made| {
        let wild = made.controls.iter().map(|ratio| ratio * 10.0);
        Noise::of(wild.collect(), Origin::Elsewhere)
    });
    assert!(
        here > alone && alone > 10.0 * elsewhere,
        "{here} {alone} {elsewhere}"
    );
}

#[test]
fn equivalence_is_proved_when_true_and_not_at_the_margin() {
    let proved = |ratio: f64, spread: f64| {
        count(|seed| {
            let mut bench = Bench::new(seed, Tail::Normal, spread);
            let judged = experiment(&mut bench, late(12), ratio);
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
        for blocks in [3, 4, 8, 20] {
            let covered = count(|seed| {
                let made = Bench::new(seed, tail, 0.05).blocks(blocks, 1.3);
                let noise = Noise::of(made.controls, Origin::Here);
                let estimate = paired::interval(&made.differences, noise.as_ref(), ALPHA);
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

/// What a card says beside its interval.
#[test]
fn bootstrap_intervals_of_a_few_ratios_hold_in_nine_of_ten() {
    let truth = 1.3_f64.ln();
    let middle = |samples: &[Vec<f64>]| median(&samples[0]).unwrap_or(f64::NAN);
    for tail in TAILS {
        for blocks in [6, 8] {
            let covered = count(|seed| {
                let sample = [Bench::new(seed, tail, 0.05).differences(blocks, 1.3)];
                let found = bootstrap::interval(&sample, &middle, 0.03, 300, u64::from(seed));
                found.is_some_and(|found| found.interval.contains(truth))
            });
            assert!(covered >= 0.9, "{tail:?}, {blocks} blocks: {covered}");
        }
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

/// An axis with several runs at each of its values, as every experiment has.
#[test]
fn intervals_of_slopes_hold_where_runs_share_a_place() {
    let axes: [&[(u32, usize)]; 4] = [
        &[(1, 6), (2, 6), (4, 12)],
        &[(1, 12), (2, 12), (4, 12)],
        &[(1, 6), (8, 6), (16, 6), (64, 6), (128, 12)],
        &[(1, 30), (2, 30), (4, 30)],
    ];
    for axis in axes {
        let covered = count(|seed| {
            let mut bench = Bench::new(seed, Tail::Normal, 5.0);
            let places = axis
                .iter()
                .flat_map(|(x, runs)| std::iter::repeat_n(f64::from(*x), *runs));
            let points: Vec<[f64; 2]> = places.map(|x| [x, 3.0 * x + bench.noise()]).collect();
            slope_interval(&points, ALPHA).is_some_and(|e| e.interval.contains(3.0))
        });
        assert!(
            (COVERED_MIN..0.985).contains(&covered),
            "{axis:?}: {covered}"
        );
    }
}
