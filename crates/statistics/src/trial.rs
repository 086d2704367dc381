//! The trial of the whole way from runs to a verdict: ten thousand experiments on a simulated
//! machine, for each way in which real machines disturb them. Equal sides must not be called
//! different more often than is promised, and a difference of 10 % must be found by the plan that a
//! card announces.

use super::equivalence::bounds;
use super::noise::{Noise, Origin};
use super::paired;
use super::stopping::{Judged, Spending, judge, looks};
use super::{needed, student};

/// How often a decision may be wrong.
const ALPHA: f64 = 0.05;

/// What ten thousand experiments may differ from it: half a point.
const TOLERANCE: f64 = 0.005;

const EXPERIMENTS: u32 = 10_000;

/// Plans whose budget is announced and then spent.
const PLANS: u32 = 1_000;

/// Runs of one arm differ by this much on a calm machine.
const SPREAD: f64 = 0.03;

/// What a machine does to the runs on it.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// Nothing.
    Calm,
    /// Every run is a little slower than the one before, as on a disk that fills up.
    Drift,
    /// Now and then somebody else takes the processors for some runs.
    Steal,
    /// Each run is of one of two speeds, by where its memory happens to lie.
    Bimodal,
}

const DISTURBANCES: [Disturbance; 4] = [
    Disturbance::Calm,
    Disturbance::Drift,
    Disturbance::Steal,
    Disturbance::Bimodal,
];

/// A machine that makes runs one after the other.
struct Machine {
    random: fastrand::Rng,
    disturbance: Disturbance,
    spread: f64,
    runs: u32,
    /// Runs that somebody else still disturbs.
    stolen: u32,
}

impl Machine {
    fn new(seed: u32, disturbance: Disturbance, spread: f64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(u64::from(seed)),
            disturbance,
            spread,
            runs: 0,
            stolen: 0,
        }
    }

    /// Mean 0, variance 1, nearly normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0
    }

    /// The logarithm of what one run takes.
    fn run(&mut self) -> f64 {
        self.runs += 1;
        let disturbed = match self.disturbance {
            Disturbance::Calm => 0.0,
            Disturbance::Drift => 0.01 * f64::from(self.runs),
            Disturbance::Steal => self.steal(),
            Disturbance::Bimodal => 0.08 * f64::from(self.random.u8(..2)),
        };
        disturbed + self.normal() * self.spread
    }

    /// A visit begins before one run of twelve and lasts some runs.
    fn steal(&mut self) -> f64 {
        if self.stolen == 0 && self.random.u8(..12) == 0 {
            self.stolen = 1 + u32::from(self.random.u8(..4));
        }
        let is_disturbed = self.stolen > 0;
        self.stolen = self.stolen.saturating_sub(1);
        if is_disturbed {
            0.1 + 0.2 * self.random.f64()
        } else {
            0.0
        }
    }

    /// An experiment of randomised complete blocks: baseline, its control and a candidate with this
    /// effect run once in each block, in random order.
    fn experiment(&mut self, blocks: u32, effect: f64) -> Blocks {
        let mut made = Blocks::default();
        for _ in 0..blocks {
            let mut order = [0_usize, 1, 2];
            self.random.shuffle(&mut order);
            let mut took = [0.0; 3];
            for side in order {
                took[side] = self.run();
            }
            let [baseline, control, candidate] = took;
            made.differences.push(candidate + effect - baseline);
            made.controls.push(control - baseline);
        }
        made
    }
}

/// Logarithms of ratios, block by block.
#[derive(Default)]
struct Blocks {
    differences: Vec<f64>,
    controls: Vec<f64>,
}

impl Blocks {
    fn noise(&self) -> Option<Noise> {
        Noise::of(self.controls.clone(), Origin::Here)
    }

    fn judged(&self, alpha: f64, spending: Spending) -> Option<Judged> {
        let noise = self.noise();
        let interval = |part: &[f64], alpha: f64| paired::interval(part, noise.as_ref(), alpha);
        let planned = u32::try_from(self.differences.len()).unwrap_or(u32::MAX);
        judge(
            &self.differences,
            &looks(planned, alpha, spending),
            &interval,
        )
    }

    fn is_called_different(&self, alpha: f64, spending: Spending) -> bool {
        let judged = self.judged(alpha, spending);
        judged.is_some_and(|judged| !judged.estimate.interval.contains(0.0))
    }

    /// Blocks that a card of an open question announces.
    fn announced(&self) -> Option<u32> {
        let judged = self.judged(ALPHA, Spending::Late)?;
        let (scatter, _) = student::scatter(&self.differences, self.noise().as_ref())?;
        let done = self.differences.len();
        let value = judged.estimate.value;
        let all = needed::blocks(value, (scatter, done), bounds(0.02), ALPHA)?;
        u32::try_from(all.max(done + 1)).ok()
    }
}

fn share(of: u32, holds: impl Fn(u32) -> bool) -> f64 {
    let held: u32 = (0..of).map(|seed| u32::from(holds(seed))).sum();
    f64::from(held) / f64::from(of)
}

#[test]
fn ten_thousand_equal_sides_are_called_different_no_more_often_than_stated() {
    for disturbance in DISTURBANCES {
        for blocks in [3, 6, 12] {
            let wrong = share(EXPERIMENTS, |seed| {
                let made = Machine::new(seed, disturbance, SPREAD).experiment(blocks, 0.0);
                made.is_called_different(ALPHA, Spending::Late)
            });
            assert!(
                wrong <= ALPHA + TOLERANCE,
                "{disturbance:?}, {blocks} blocks: {wrong}"
            );
        }
    }
}

/// Where a run may end at each look, and where a decision may err less often.
#[test]
fn looking_early_and_stricter_levels_keep_their_word_too() {
    for disturbance in DISTURBANCES {
        for (alpha, spending) in [(ALPHA, Spending::Early), (0.01, Spending::Late)] {
            let wrong = share(EXPERIMENTS, |seed| {
                let made = Machine::new(seed, disturbance, SPREAD).experiment(12, 0.0);
                made.is_called_different(alpha, spending)
            });
            assert!(
                wrong <= alpha + TOLERANCE,
                "{disturbance:?}, {spending:?} {alpha}: {wrong}"
            );
        }
    }
}

/// A plan of six blocks decides, or its card announces how many are needed, where it can; a plan of
/// so many then decides in nine of ten cases.
#[test]
fn ten_percent_are_found_at_the_announced_budget_in_nine_of_ten_plans() {
    let effect = 1.1_f64.ln();
    let finds = |made: &Blocks| {
        let judged = made.judged(ALPHA, Spending::Late);
        judged.is_some_and(|judged| judged.estimate.interval.low > 0.0)
    };
    for disturbance in DISTURBANCES {
        for spread in [0.03, 0.06, 0.1] {
            let (mut announced, mut found) = (0_u32, 0_u32);
            for seed in 0..PLANS {
                let mut machine = Machine::new(seed, disturbance, spread);
                let first = machine.experiment(6, effect);
                let budget = if finds(&first) {
                    Some(6)
                } else {
                    first.announced()
                };
                let Some(blocks) = budget else {
                    continue;
                };
                announced += 1;
                found += u32::from(blocks == 6 || finds(&machine.experiment(blocks, effect)));
            }
            let share = f64::from(found) / f64::from(announced);
            assert!(share >= 0.9, "{disturbance:?}, spread {spread}: {share}");
            // A card without a figure is the exception.
            assert!(announced * 10 >= PLANS * 8, "{disturbance:?}: {announced}");
        }
    }
}
