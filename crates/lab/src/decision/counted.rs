//! Metrics that no clock is in: dead rows, bytes of WAL, transaction numbers.
//!
//! They are the same in every run, or nearly so; to ask six blocks of them would be a waste. Two
//! runs of a side, or control runs anywhere in the experiment, are enough when the sides differ by
//! more than five times what equal runs differ. What is not so clear is judged like a time.

use crate::statistics::quantile::median;

/// Sides must differ by this many times the differences within them.
const CLEAR: f64 = 5.0;

/// The values of both sides and of runs that should be equal.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    /// Values of the baseline, control runs included.
    pub(super) baseline: &'a [f64],
    /// Values of the candidate.
    pub(super) candidate: &'a [f64],
    /// Equal runs differ by this many times, from control runs of the whole experiment.
    pub(super) noise_times: Option<f64>,
}

/// How clearly the sides differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Counted {
    /// Every run of both sides gave this.
    Same,
    /// They differ, far beyond what equal runs do; `within` is the largest difference of equal
    /// runs.
    Apart {
        /// Largest difference between runs of one side.
        within: f64,
    },
    /// Too few runs, or differences that may be chance.
    Unclear,
}

impl Sides<'_> {
    /// Compares the sides.
    pub(super) fn compare(self) -> Counted {
        let both = (median(self.baseline), median(self.candidate));
        let (Some(baseline), Some(candidate)) = both else {
            return Counted::Unclear;
        };
        let own = range(self.baseline).max(range(self.candidate));
        let within = match (
            self.baseline.len().max(self.candidate.len()),
            self.noise_times,
        ) {
            (2.., _) => own,
            (_, Some(times)) => (times - 1.0).max(0.0) * baseline.abs(),
            (_, None) => return Counted::Unclear,
        };
        let apart = (candidate - baseline).abs();
        if apart == 0.0 && within == 0.0 {
            Counted::Same
        } else if apart > CLEAR * within {
            Counted::Apart { within }
        } else {
            Counted::Unclear
        }
    }
}

fn range(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (high - low).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(baseline: &[f64], candidate: &[f64]) -> Counted {
        Sides {
            baseline,
            candidate,
            noise_times: None,
        }
        .compare()
    }

    #[test]
    fn clear_differences_need_no_statistics() {
        let apart = compare(&[20_000.0, 20_000.0], &[0.0]);
        assert_eq!(apart, Counted::Apart { within: 0.0 });
        assert_eq!(compare(&[5.0, 5.0], &[5.0, 5.0]), Counted::Same);
        assert_eq!(compare(&[100.0, 103.0], &[110.0, 111.0]), Counted::Unclear);
        assert_eq!(compare(&[1.0], &[2.0]), Counted::Unclear);
    }
}
