//! What sessions wait for (`pg_stat_activity`, `src/backend/utils/activity/wait_event_names.txt`).

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::Session;

use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, number, text};

const SQL: &str = "SELECT coalesce(wait_event_type || ':' || wait_event, 'running'), count(*) \
    FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() \
    AND backend_type IN ('client backend', 'parallel worker') GROUP BY 1";

/// Samples the wait events of sessions.
pub struct WaitEvents;

#[derive(Default)]
struct Readings {
    samples: u64,
    sessions: BTreeMap<String, f64>,
    active: Vec<[f64; 2]>,
}

impl Sampler for WaitEvents {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn about(&self) -> &'static str {
        "Reads pg_stat_activity: how many active sessions wait for what, on average over the run; sessions that wait \
         for nothing are running."
    }

    fn cost(&self) -> &'static str {
        "One statement ten times a second, which examines every backend's slot: about 0.3 ms at 100 connections."
    }

    fn every(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn open(&self, _place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings::default())
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let mut active = 0.0;
        for row in session.query(SQL)? {
            let sessions = number(&row, 1);
            active += sessions;
            *self.sessions.entry(text(&row, 0).to_owned()).or_default() += sessions;
        }
        self.samples += 1;
        self.active.push([at, active]);
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        for (event, sessions) in self.sessions {
            sampled.metric(format!("wait.{event}"), sessions / self.samples as f64);
        }
        sampled.series("wait.active_sessions", self.active);
    }
}
