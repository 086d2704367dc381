//! Who reads and writes what, in numbers (`pg_stat_io`, since 16; bytes instead of `op_bytes` since
//! 18).

use std::time::Duration;

use pgclinic_servers::Session;

use super::counters::Counters;
use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, number, text};

const COLUMNS: [&str; 6] = [
    "reads",
    "writes",
    "extends",
    "hits",
    "evictions",
    "read_bytes",
];

/// Samples reads and writes by who made them.
pub struct IoCounters;

struct Readings {
    sql: String,
    counters: Counters,
}

impl Sampler for IoCounters {
    fn name(&self) -> &'static str {
        "io"
    }

    fn about(&self) -> &'static str {
        "Reads pg_stat_io at the begin and at the end: reads, writes, extends, hits and evictions of each kind of \
         process, object and context. Backends report about once a second, so short runs see less than there was."
    }

    fn cost(&self) -> &'static str {
        "One statement every ten seconds."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn missing(&self, place: &WatchedServer) -> Option<String> {
        (place.major < 16).then(|| "pg_stat_io came with PostgreSQL 16".to_owned())
    }

    fn open(&self, place: &WatchedServer) -> Box<dyn Sampling> {
        let bytes = match place.major {
            ..18 => "reads * op_bytes",
            _ => "read_bytes",
        };
        Box::new(Readings {
            sql: format!(
                "SELECT backend_type, object, context, reads, writes, extends, hits, evictions, {bytes} \
                 FROM pg_stat_io"
            ),
            counters: Counters::default(),
        })
    }
}

impl Sampling for Readings {
    fn sample(&mut self, _at: f64, session: &mut Session) -> Result<(), ReadingError> {
        for row in session.query(&self.sql)? {
            let who =
                [text(&row, 0), text(&row, 1), text(&row, 2)].map(|word| word.replace(' ', "_"));
            for (position, column) in COLUMNS.iter().enumerate() {
                let name = format!("io.{}.{column}", who.join("."));
                self.counters.read(name, number(&row, position + 3));
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        for (name, growth) in self.counters.growth().filter(|(_, growth)| *growth > 0.0) {
            sampled.metric(name, growth);
        }
    }
}
