//! What a load gave: plain data for the run's folder, and the figures that experiments use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Protocol;

/// How a load ended.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadResult {
    /// It ran.
    Measured(Box<Measured>),
    /// It could not run: nobody, or not everybody, was connected.
    Empty {
        /// How many were connected, and what kept the others.
        why: String,
    },
}

/// A load that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `pgclinic`, or `pgbench 15.14`.
    pub driver: String,
    /// Connections.
    pub clients: u32,
    /// Threads that drove them.
    pub threads: u32,
    /// How SQL was sent.
    pub protocol: Protocol,
    /// From the first connection to the last; not part of the window.
    pub connect_s: f64,
    /// From the moment all were connected.
    pub window_s: f64,
    /// Rounds of the script that ended well within the window.
    pub rounds: u64,
    /// Rounds that ended in an error.
    pub failed: u64,
    /// Rounds that began in the window and ended well after it.
    pub ended_late: u64,
    /// Rounds that did not end and were cancelled.
    pub abandoned: u64,
    /// Rounds of the open loop that fell due and never began; each stands in the latencies with the
    /// wait it had.
    pub overdue: u64,
    /// Clients whose connection broke.
    pub lost_clients: u32,
    /// Rounds a second.
    pub tps: f64,
    /// Of rounds; of the open loop counted from when they were due.
    pub latency: Latency,
    /// How late rounds of the open loop began; nothing in the closed loop.
    pub lag: Option<Latency>,
    /// Latencies in nanoseconds and how many had them; empty where the driver does not tell.
    pub histogram: Histogram,
    /// Second by second.
    pub seconds: Vec<SecondOfLoad>,
    /// By SQLSTATE; `08006` is a lost connection.
    pub errors: BTreeMap<String, SqlErrors>,
    /// Processor time of the generator's own threads; `None` where the driver does not tell.
    pub generator_cpu_s: Option<f64>,
}

/// Latencies in nanoseconds and how many had them, ascending.
pub type Histogram = Vec<(u64, u64)>;

/// Latencies in milliseconds; `None` where the driver does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The sum over the count.
    pub mean_ms: f64,
    /// Half were faster.
    pub p50_ms: Option<f64>,
    /// Nine of ten were faster.
    pub p90_ms: Option<f64>,
    /// 99 of 100 were faster.
    pub p99_ms: Option<f64>,
    /// 999 of 1,000 were faster.
    pub p999_ms: Option<f64>,
    /// The slowest.
    pub max_ms: Option<f64>,
}

/// One second of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondOfLoad {
    /// Rounds that ended well in it.
    pub rounds: u64,
    /// Rounds that failed in it.
    pub failed: u64,
    /// Over the rounds that ended well.
    pub latency_sum_ns: u64,
    /// The slowest of them.
    pub latency_max_ns: u64,
}

/// Errors of one SQLSTATE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlErrors {
    /// How many.
    pub count: u64,
    /// The first one's message.
    pub first: String,
}

impl SecondOfLoad {
    pub(super) fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.failed += other.failed;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}

impl Latency {
    /// Of a histogram of nanoseconds.
    pub(super) fn of(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        let at = |quantile| Some(milliseconds(histogram.value_at_quantile(quantile)));
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            mean_ms: histogram.mean() / 1e6,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: Some(milliseconds(histogram.max())),
        }
    }
}

impl Measured {
    /// What went wrong, by how often; empty when nothing did.
    pub fn trouble(&self) -> String {
        let mut errors: Vec<_> = self.errors.iter().collect();
        errors.sort_by_key(|(_, errors)| std::cmp::Reverse(errors.count));
        let words = errors.iter().map(|(sqlstate, errors)| {
            format!("{} times {sqlstate}: {}", errors.count, errors.first)
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Figures by the names that experiments use.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::from([
            ("tps".to_owned(), self.tps),
            ("latency_mean_ms".to_owned(), self.latency.mean_ms),
            ("rounds".to_owned(), self.rounds as f64),
            ("failed".to_owned(), self.failed as f64),
            ("connect_s".to_owned(), self.connect_s),
        ]);
        let quantiles = [
            ("latency_p50_ms", self.latency.p50_ms),
            ("latency_p99_ms", self.latency.p99_ms),
            ("latency_max_ms", self.latency.max_ms),
            ("generator_cpu_s", self.generator_cpu_s),
        ];
        for (name, value) in quantiles {
            metrics.extend(value.map(|value| (name.to_owned(), value)));
        }
        metrics
    }

    /// Second by second, by name: (second, value).
    pub fn series(&self) -> BTreeMap<String, Vec<[f64; 2]>> {
        let whole = self.window_s.floor();
        let numbered = || {
            let seconds = self.seconds.iter().enumerate();
            let numbered = seconds.map(|(second, books)| (second as f64, books));
            numbered.take_while(move |(second, _)| *second < whole)
        };
        let mean = |books: &SecondOfLoad| books.latency_sum_ns as f64 / books.rounds as f64 / 1e6;
        let tps = numbered().map(|(second, books)| [second, books.rounds as f64]);
        let busy = || numbered().filter(|(_, books)| books.rounds > 0);
        let means = busy().map(|(second, books)| [second, mean(books)]);
        let slowest = busy().map(|(second, books)| [second, milliseconds(books.latency_max_ns)]);
        BTreeMap::from([
            ("tps".to_owned(), tps.collect()),
            ("latency_mean_ms".to_owned(), means.collect()),
            ("latency_max_ms".to_owned(), slowest.collect()),
        ])
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_gives_milliseconds() {
        let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("a histogram");
        for number in 1..=1000_u64 {
            histogram.record(number * 1_000_000).expect("it fits");
        }
        let latency = Latency::of(&histogram);
        assert!((latency.mean_ms - 500.5).abs() < 1.0, "{latency:?}");
        assert!(
            (latency.p99_ms.unwrap_or(0.0) - 990.0).abs() < 2.0,
            "{latency:?}"
        );
        assert_eq!(
            Latency::of(&hdrhistogram::Histogram::new(3).expect("one")).max_ms,
            None
        );
    }
}
