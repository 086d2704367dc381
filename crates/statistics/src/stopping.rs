//! When the runs may be looked at, and how much each look may err.
//!
//! Looking after every block and stopping as soon as a difference shows finds differences that are
//! not there. Here the looks are fixed beforehand (half, three quarters and all of the planned
//! blocks) and share the whole alpha: by the time that a share `t` of the blocks is done, `alpha
//! t^2` is spent where the run may end at a look, and `alpha t^6` where it goes on to its end
//! whatever it finds. The chance to err at any look is at most the sum, whatever the test and
//! however the looks depend on each other. Looking between looks changes nothing: the last look
//! counts.
//!
//! The intervals of all looks hold together, so what stands at the end is what they have in common.

use super::{Estimate, Interval, number};

/// Fewer blocks are never judged.
pub const BLOCKS_MIN: u32 = 3;

/// How the right to err is spent over the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spending {
    /// A good part at the first look: the run ends when it has decided.
    Early,
    /// Nearly all at the end: looks before it serve runs that were cut short, or lack a block.
    Late,
}

impl Spending {
    /// `alpha` to this power of the share that is done.
    fn power(self) -> i32 {
        match self {
            Spending::Early => 2,
            Spending::Late => 6,
        }
    }
}

/// One look.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Look {
    /// After this many complete blocks.
    pub blocks: u32,
    /// It may err this often.
    pub alpha: f64,
}

/// The looks at a plan of `blocks`; all looks together err at most `alpha`.
pub fn looks(blocks: u32, alpha: f64, spending: Spending) -> Vec<Look> {
    let last = blocks.max(1);
    let first = BLOCKS_MIN.min(last);
    let mut after = vec![last.div_ceil(2), (last * 3).div_ceil(4), last];
    after
        .iter_mut()
        .for_each(|at| *at = (*at).clamp(first, last));
    after.dedup();
    let mut spent = 0.0;
    let share = |at: u32| alpha * (f64::from(at) / f64::from(last)).powi(spending.power());
    let looks = after.into_iter().map(|blocks| {
        let alpha = share(blocks) - spent;
        spent = share(blocks);
        Look { blocks, alpha }
    });
    looks.collect()
}

/// What the looks so far have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// The last look's value, and what all intervals so far agree on.
    pub estimate: Estimate,
    /// The same with twice the alpha, for equivalence.
    pub wider_alpha: Interval,
    /// Blocks at the last look.
    pub blocks: usize,
}

/// Judges `differences`, in the order of blocks, at every look that they reach. `interval` makes an
/// interval that errs at most the alpha it is given. `None` before the first look that can be
/// judged, and when the looks contradict each other.
pub fn judge(
    differences: &[f64],
    looks: &[Look],
    interval: &dyn Fn(&[f64], f64) -> Option<Estimate>,
) -> Option<Judged> {
    let mut judged: Option<Judged> = None;
    for look in looks {
        let blocks = usize::try_from(look.blocks).unwrap_or(usize::MAX);
        let Some(part) = differences.get(..blocks) else {
            break;
        };
        let (Some(estimate), Some(wider)) =
            (interval(part, look.alpha), interval(part, 2.0 * look.alpha))
        else {
            continue;
        };
        let before = judged.map(|judged| (judged.estimate.interval, judged.wider_alpha));
        let (all, all_wider) = match before {
            Some((one, other)) => (estimate.interval.and(one)?, wider.interval.and(other)?),
            None => (estimate.interval, wider.interval),
        };
        judged = Some(Judged {
            estimate: Estimate {
                value: estimate.value.clamp(all.low, all.high),
                interval: all,
            },
            wider_alpha: all_wider,
            blocks,
        });
    }
    judged
}

/// The next look after `blocks` are done.
pub fn next(looks: &[Look], blocks: usize) -> Option<Look> {
    looks
        .iter()
        .copied()
        .find(|look| f64::from(look.blocks) > number(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_alpha() {
        let late: f64 = looks(12, 0.05, Spending::Late)[2].alpha;
        let looks = looks(12, 0.05, Spending::Early);
        assert!(late > 0.04 && looks[2].alpha < 0.03);
        assert_eq!(
            looks.iter().map(|l| l.blocks).collect::<Vec<_>>(),
            [6, 9, 12]
        );
        let spent: f64 = looks.iter().map(|look| look.alpha).sum();
        assert!((spent - 0.05).abs() < 1e-12);
        assert!(looks[0].alpha < looks[2].alpha);
    }

    #[test]
    fn small_plans_are_looked_at_once() {
        for blocks in [1, 2, 3] {
            let looks = looks(blocks, 0.05, Spending::Late);
            assert_eq!(
                looks,
                [Look {
                    blocks,
                    alpha: 0.05
                }]
            );
        }
    }

    #[test]
    fn between_looks_the_last_look_counts() {
        let mean =
            |part: &[f64], alpha: f64| super::super::student::mean_interval(part, None, alpha);
        let values = [1.0, 1.2, 0.9, 1.1, 1.0, 1.0, 50.0];
        let looks = looks(12, 0.05, Spending::Early);
        let at_look = judge(&values[..6], &looks, &mean);
        assert!(at_look.is_some());
        assert_eq!(judge(&values, &looks, &mean), at_look);
        assert_eq!(judge(&values[..5], &looks, &mean), None);
    }
}
