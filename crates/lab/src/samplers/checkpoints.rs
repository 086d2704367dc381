//! Checkpoints that fell into the run (`pg_stat_bgwriter` up to 16, `pg_stat_checkpointer` since
//! 17).
//!
//! The counters grow when a checkpoint begins and are told a while later; the control file changes
//! when one has ended.

use std::time::Duration;

use pgclinic_servers::Session;

use super::counters::Counters;
use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, number, text};

const BEFORE_17: &str = "SELECT checkpoints_timed, checkpoints_req, buffers_checkpoint, checkpoint_lsn \
    FROM pg_stat_bgwriter, pg_control_checkpoint()";
const SINCE_17: &str = "SELECT num_timed, num_requested, buffers_written, checkpoint_lsn \
    FROM pg_stat_checkpointer, pg_control_checkpoint()";

/// Samples the number of checkpoints.
pub struct Checkpoints;

struct Readings {
    sql: &'static str,
    counters: Counters,
    begun: Option<f64>,
    last_lsn: Option<String>,
    ended: u64,
    overlaps: Vec<String>,
}

impl Sampler for Checkpoints {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    fn about(&self) -> &'static str {
        "Reads the checkpointer's counters and the control file: checkpoints by time and by request, buffers that they \
         wrote; each one is flagged with its time, since it makes a run slower than its neighbours."
    }

    fn cost(&self) -> &'static str {
        "One statement a second, about 0.1 ms."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn open(&self, place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings {
            sql: if place.major < 17 {
                BEFORE_17
            } else {
                SINCE_17
            },
            counters: Counters::default(),
            begun: None,
            last_lsn: None,
            ended: 0,
            overlaps: Vec::new(),
        })
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let rows = session.query(self.sql)?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        for (column, name) in ["timed", "requested", "buffers"].into_iter().enumerate() {
            self.counters.read(name, number(row, column));
        }
        let begun = number(row, 0) + number(row, 1);
        if self
            .begun
            .replace(begun)
            .is_some_and(|before| begun > before)
        {
            self.overlaps
                .push(format!("a checkpoint began, reported at {at:.0} s"));
        }
        let lsn = text(row, 3).to_owned();
        if self
            .last_lsn
            .replace(lsn.clone())
            .is_some_and(|before| before != lsn)
        {
            self.ended += 1;
            self.overlaps
                .push(format!("a checkpoint ended, seen at {at:.0} s"));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        for (name, growth) in self.counters.growth() {
            sampled.metric(format!("checkpoints.{name}"), growth);
        }
        sampled.metric("checkpoints.ended", self.ended as f64);
        sampled.overlaps.extend(self.overlaps);
    }
}
