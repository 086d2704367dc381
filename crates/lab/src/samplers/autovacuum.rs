//! Autovacuum workers that came by during the run.

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::Session;

use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, text};

const SQL: &str =
    "SELECT pid || ' ' || query FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'";

/// Flags that are told one by one.
const FLAGS_MAX: usize = 20;

/// Samples the autovacuum workers.
pub struct Autovacuum;

#[derive(Default)]
struct Readings {
    samples: u64,
    busy: u64,
    /// First and last sight of each worker's statement.
    workers: BTreeMap<String, (f64, f64)>,
}

impl Sampler for Autovacuum {
    fn name(&self) -> &'static str {
        "autovacuum"
    }

    fn about(&self) -> &'static str {
        "Looks for autovacuum workers in pg_stat_activity; each one is flagged with its table and its time."
    }

    fn cost(&self) -> &'static str {
        "One statement each half second, about 0.1 ms; a worker that lives shorter than that may be missed."
    }

    fn every(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn open(&self, _place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings::default())
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let rows = session.query(SQL)?;
        self.samples += 1;
        self.busy += u64::from(!rows.is_empty());
        for row in rows {
            let worker = self.workers.entry(text(&row, 0).to_owned());
            worker.or_insert((at, at)).1 = at;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        let share = self.busy as f64 / self.samples.max(1) as f64;
        sampled.metric("autovacuum.busy_percent", share * 100.0);
        sampled.metric("autovacuum.workers", self.workers.len() as f64);
        for (worker, (first, last)) in self.workers.iter().take(FLAGS_MAX) {
            let what = worker.split_once(' ').map_or("", |(_, query)| query);
            let what = if what.is_empty() {
                "autovacuum: choosing tables"
            } else {
                what
            };
            sampled
                .overlaps
                .push(format!("{what}, seen from {first:.1} to {last:.1} s"));
        }
        let more = self.workers.len().saturating_sub(FLAGS_MAX);
        if more > 0 {
            sampled
                .overlaps
                .push(format!("{more} more runs of autovacuum workers"));
        }
    }
}
