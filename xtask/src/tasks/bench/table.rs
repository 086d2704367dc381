//! The result as a Markdown table.

use std::fmt;

use super::measure::{Cache, Sample};
use crate::{repository, shell};

/// One command and its runs.
pub(super) struct Contestant {
    name: String,
    pub(super) samples: Vec<Sample>,
}

/// All contestants over the same bytes; the first one is what the others are compared with.
pub(super) struct Table {
    pub(super) bytes: u64,
    pub(super) runs: u64,
    pub(super) cache: Cache,
    pub(super) contestants: Vec<Contestant>,
}

impl Contestant {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            samples: Vec::new(),
        }
    }

    /// Seconds, ascending.
    fn seconds(&self) -> Vec<f64> {
        let mut seconds: Vec<f64> = self.samples.iter().map(|sample| sample.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds
    }

    /// Memory is recorded for our own program only: the others run behind `runuser`.
    fn peak(&self) -> String {
        let peak = self
            .samples
            .iter()
            .map(|sample| sample.peak_bytes)
            .max()
            .unwrap_or(0);
        if self.name.contains("pgclinic") {
            format!("{} MiB", peak >> 20)
        } else {
            "not measured".into()
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.cache == Cache::Cold {
            "caches dropped before each run"
        } else {
            "files in the page cache"
        };
        writeln!(f, "{}\n", machine())?;
        writeln!(
            f,
            "{:.2} GiB of pages, {cache}, {} runs of each in turns, at a limited rate one.\n",
            gib(self.bytes),
            self.runs
        )?;
        writeln!(
            f,
            "| command | median s | min s | GB/s | speed against the first | peak memory |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|--:|")?;
        let yardstick = self
            .contestants
            .first()
            .map_or(f64::NAN, |first| median(&first.seconds()));
        for contestant in &self.contestants {
            let seconds = contestant.seconds();
            let (middle, least) = (
                median(&seconds),
                seconds.first().copied().unwrap_or(f64::NAN),
            );
            let speed = self.bytes as f64 / middle / 1e9;
            let (name, peak) = (&contestant.name, contestant.peak());
            let ratio = yardstick / middle;
            writeln!(
                f,
                "| `{name}` | {middle:.2} | {least:.2} | {speed:.2} | {ratio:.2} | {peak} |"
            )?;
        }
        Ok(())
    }
}

/// The middle of an ascending list; the mean of the two middle ones when it is even.
pub(super) fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match (sorted.get(half.wrapping_sub(1)), sorted.get(half)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(middle)) => *middle,
        _ => f64::NAN,
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// Processor, cores, kernel and commit in one line.
pub(super) fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1))
        .unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = shell::capture(&mut shell::command("uname", &["-sr"])).unwrap_or_default();
    let commit = repository::commit().unwrap_or_default();
    let commit = commit.get(..12).unwrap_or("unknown");
    format!(
        "{model}, {cores} cores, {}, commit {commit}.",
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_nothing() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_first_row_is_the_yardstick() {
        let row = |name: &str, seconds| {
            let mut contestant = Contestant::new(name);
            contestant.samples.push(Sample {
                seconds,
                peak_bytes: 5 << 20,
            });
            contestant
        };
        let contestants = vec![row("pg_checksums -c", 2.0), row("pgclinic check", 0.5)];
        let table = Table {
            bytes: 1 << 30,
            runs: 1,
            cache: Cache::Warm,
            contestants,
        };
        let text = table.to_string();
        assert!(
            text.contains("| `pg_checksums -c` | 2.00 | 2.00 | 0.54 | 1.00 | not measured |"),
            "{text}"
        );
        assert!(
            text.contains("| `pgclinic check` | 0.50 | 0.50 | 2.15 | 4.00 | 5 MiB |"),
            "{text}"
        );
    }
}
