//! Requests that are under way (`pg_aios`, since 18; `src/backend/storage/aio/aio_funcs.c`).

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::Session;

use super::{Place, Sampled, Sampler, Sampling, Trouble, number, text};

/// Requests live for microseconds to milliseconds: one look says little, so each sample is a burst of looks.
const LOOKS: u32 = 20;

const SQL: &str = "SELECT state, count(*) FROM pg_aios GROUP BY 1";

/// See the module.
pub struct IoInFlight;

#[derive(Default)]
struct Seen {
    looks: u64,
    most: f64,
    states: BTreeMap<String, f64>,
    means: Vec<[f64; 2]>,
}

impl Sampler for IoInFlight {
    fn name(&self) -> &'static str {
        "aio"
    }

    fn about(&self) -> &'static str {
        "Reads pg_aios in bursts of 20 looks: requests in flight on average and at most, by state."
    }

    fn cost(&self) -> &'static str {
        "Twenty statements each half second, about 0.1 ms each; every look takes a snapshot of all handles without locks."
    }

    fn every(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn missing(&self, place: &Place) -> Option<String> {
        (place.major < 18).then(|| "pg_aios came with PostgreSQL 18".to_owned())
    }

    fn open(&self, _place: &Place) -> Box<dyn Sampling> {
        Box::new(Seen::default())
    }
}

impl Sampling for Seen {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), Trouble> {
        let mut sum = 0.0;
        for _ in 0..LOOKS {
            let mut now = 0.0;
            for row in session.query(SQL)? {
                let requests = number(&row, 1);
                now += requests;
                *self.states.entry(text(&row, 0).to_owned()).or_default() += requests;
            }
            sum += now;
            self.most = self.most.max(now);
            self.looks += 1;
        }
        self.means.push([at, sum / f64::from(LOOKS)]);
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        let looks = self.looks.max(1) as f64;
        let all: f64 = self.states.values().sum();
        sampled.metric("aio.in_flight_mean", all / looks);
        sampled.metric("aio.in_flight_max", self.most);
        for (state, requests) in &self.states {
            sampled.metric(format!("aio.{state}"), requests / looks);
        }
        sampled.series("aio.in_flight", self.means);
    }
}
