//! What the processors did (`/proc/stat`), and how often the machine was given to somebody else
//! (steal).

use std::time::Duration;

use pgclinic_servers::Session;

use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer};

/// A run with more steal than this is flagged.
const STEAL_PERCENT: f64 = 5.0;

/// The fields of the line `cpu`, in their order.
const FIELDS: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];

/// Samples the processors, steal time included.
pub struct Processor;

#[derive(Default)]
struct Readings {
    first: Option<[f64; 8]>,
    last: Option<[f64; 8]>,
    busy: Vec<[f64; 2]>,
    steal: Vec<[f64; 2]>,
}

impl Sampler for Processor {
    fn name(&self) -> &'static str {
        "processor"
    }

    fn about(&self) -> &'static str {
        "Reads /proc/stat: shares of user, system, waiting for disks, idle and steal, over all processors."
    }

    fn cost(&self) -> &'static str {
        "One file a second, under 0.1 ms."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn missing(&self, place: &WatchedServer) -> Option<String> {
        place.not_ours()
    }

    fn open(&self, _place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings::default())
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, _session: &mut Session) -> Result<(), ReadingError> {
        let text = std::fs::read_to_string("/proc/stat")?;
        let now =
            fields(&text).ok_or_else(|| ReadingError("/proc/stat has no line cpu".to_owned()))?;
        let before = self.last.replace(now);
        if let Some(shares) = before.and_then(|before| shares(before, now)) {
            self.busy.push([at, 100.0 - shares[3] - shares[4]]);
            self.steal.push([at, shares[7]]);
        }
        self.first.get_or_insert(now);
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        let shares = self
            .first
            .zip(self.last)
            .and_then(|(first, last)| shares(first, last));
        let Some(shares) = shares else { return };
        for (name, share) in FIELDS.iter().zip(shares) {
            sampled.metric(format!("processor.{name}_percent"), share);
        }
        if shares[7] > STEAL_PERCENT {
            sampled.overlaps.push(format!(
                "the host gave {:.0} % of the processors' time to others (steal)",
                shares[7]
            ));
        }
        sampled.series("processor.busy_percent", self.busy);
        sampled.series("processor.steal_percent", self.steal);
    }
}

fn fields(stat: &str) -> Option<[f64; 8]> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut numbers = line.split_whitespace().map(str::parse::<f64>);
    let mut fields = [0.0; 8];
    for field in &mut fields {
        *field = numbers.next()?.ok()?;
    }
    Some(fields)
}

/// Percent of the time between two readings; `None` when no time has passed.
fn shares(before: [f64; 8], now: [f64; 8]) -> Option<[f64; 8]> {
    let mut shares = [0.0; 8];
    for (share, (before, now)) in shares.iter_mut().zip(before.iter().zip(now)) {
        *share = (now - before).max(0.0);
    }
    let all: f64 = shares.iter().sum();
    (all > 0.0).then(|| shares.map(|share| share / all * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between() {
        let first = fields("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1\n").expect("fields");
        let last = fields("cpu  40 0 20 130 0 0 0 10 0 0\n").expect("fields");
        let shares = shares(first, last).expect("time has passed");
        assert_eq!(
            shares.map(f64::round),
            [30.0, 0.0, 10.0, 50.0, 0.0, 0.0, 0.0, 10.0]
        );
        assert_eq!(fields("cpu0 1 2 3\n"), None);
    }
}
