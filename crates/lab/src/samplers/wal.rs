//! WAL that is written (`pg_stat_wal`, since 14; the insert position in all versions).

use std::time::Duration;

use pgclinic_servers::Session;

use super::counters::Counters;
use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, number};

const POSITION: &str = "SELECT pg_current_wal_insert_lsn() - '0/0'";
const COUNTED: &str = "SELECT pg_current_wal_insert_lsn() - '0/0', wal_records, wal_fpi, wal_buffers_full FROM pg_stat_wal";

/// Samples the bytes of WAL.
pub struct Wal;

struct Readings {
    sql: &'static str,
    counters: Counters,
    last: Option<[f64; 2]>,
    rates: Vec<[f64; 2]>,
}

impl Sampler for Wal {
    fn name(&self) -> &'static str {
        "wal"
    }

    fn about(&self) -> &'static str {
        "Reads the WAL insert position and pg_stat_wal: bytes, records, full page images, and how often the buffers \
         were full."
    }

    fn cost(&self) -> &'static str {
        "One statement a second, about 0.1 ms."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn open(&self, place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings {
            sql: if place.major < 14 { POSITION } else { COUNTED },
            counters: Counters::default(),
            last: None,
            rates: Vec::new(),
        })
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let rows = session.query(self.sql)?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        let names = ["bytes", "records", "full_page_images", "buffers_full"];
        for (column, name) in names.into_iter().enumerate().take(row.len()) {
            self.counters.read(name, number(row, column));
        }
        let now = [at, number(row, 0)];
        if let Some(last) = self.last.replace(now) {
            self.rates.extend(rate(last, now));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        for (name, growth) in self.counters.growth() {
            sampled.metric(format!("wal.{name}"), growth);
        }
        sampled.series("wal.bytes_s", self.rates);
    }
}

/// Growth for each second between two readings, at the later one.
pub(super) fn rate(before: [f64; 2], now: [f64; 2]) -> Option<[f64; 2]> {
    let seconds = now[0] - before[0];
    (seconds > 0.0).then(|| [now[0], (now[1] - before[1]) / seconds])
}
