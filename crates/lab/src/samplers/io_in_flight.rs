//! Requests that are under way (`pg_aios`, since 18; `src/backend/storage/aio/aio_funcs.c`).

use std::collections::BTreeMap;
use std::time::Duration;

use pgclinic_servers::Session;

use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, number, text};

/// Requests live for microseconds to milliseconds: one look says little, so each sample is a burst
/// of looks.
const LOOKS: u32 = 5;

/// Between two looks of a burst: looks that follow at once see the same requests.
const PAUSE: Duration = Duration::from_millis(5);

/// What has been handed to the kernel or a worker, and is not done yet.
const IN_FLIGHT: &str = "SUBMITTED";

const SQL: &str = "SELECT state, count(*) FROM pg_aios GROUP BY 1";

/// Samples the I/O requests that are under way.
pub struct IoInFlight;

/// Requests by state, over the looks of one burst.
struct Burst {
    at: f64,
    states: BTreeMap<String, f64>,
    most: f64,
}

#[derive(Default)]
struct Readings {
    bursts: Vec<Burst>,
}

impl Sampler for IoInFlight {
    fn name(&self) -> &'static str {
        "aio"
    }

    fn about(&self) -> &'static str {
        "Reads pg_aios in bursts of 5 looks: requests in flight (submitted, not done) on average and at most, and requests in \
         each state. The first and the last burst, before and after what is measured, do not count."
    }

    fn cost(&self) -> &'static str {
        "Five statements, 5 ms apart, about 14 times a second, 0.1 ms each; every look takes a snapshot of all handles without \
         locks."
    }

    fn every(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn missing(&self, place: &WatchedServer) -> Option<String> {
        (place.major < 18).then(|| "pg_aios came with PostgreSQL 18".to_owned())
    }

    fn open(&self, _place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings::default())
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let mut burst = Burst {
            at,
            states: BTreeMap::new(),
            most: 0.0,
        };
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            for row in session.query(SQL)? {
                let (state, requests) = (text(&row, 0), number(&row, 1));
                *burst.states.entry(state.to_owned()).or_default() += requests;
                if state == IN_FLIGHT {
                    burst.most = burst.most.max(requests);
                }
            }
        }
        self.bursts.push(burst);
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        // Where the window was too short for a look in between, there is no answer, and not the
        // answer 0.
        let [_, between @ .., _] = self.bursts.as_slice() else {
            return;
        };
        if between.is_empty() {
            return;
        }
        let looks = f64::from(LOOKS) * between.len() as f64;
        let of = |burst: &Burst, state: &str| burst.states.get(state).copied().unwrap_or(0.0);
        let mean = |state: &str| between.iter().map(|burst| of(burst, state)).sum::<f64>() / looks;
        sampled.metric("aio.in_flight_mean", mean(IN_FLIGHT));
        let most = between.iter().map(|burst| burst.most).fold(0.0, f64::max);
        sampled.metric("aio.in_flight_max", most);
        for state in between.iter().flat_map(|burst| burst.states.keys()) {
            sampled.metric(format!("aio.{state}"), mean(state));
        }
        let share = |burst: &Burst| [burst.at, of(burst, IN_FLIGHT) / f64::from(LOOKS)];
        sampled.series("aio.in_flight", between.iter().map(share).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(requests: f64) -> Burst {
        Burst {
            at: requests,
            states: BTreeMap::from([
                (IN_FLIGHT.to_owned(), requests * f64::from(LOOKS)),
                ("COMPLETED_SHARED".to_owned(), f64::from(LOOKS)),
            ]),
            most: requests + 1.0,
        }
    }

    fn seen(requests: &[f64]) -> Sampled {
        let mut sampled = Sampled::default();
        let bursts = requests.iter().copied().map(burst).collect();
        Box::new(Readings { bursts }).finish(1.0, &mut sampled);
        sampled
    }

    #[test]
    fn looks_before_and_behind_the_load_do_not_count() {
        let sampled = seen(&[0.0, 6.0, 2.0, 0.0]);
        assert_eq!(sampled.metrics["aio.in_flight_mean"], 4.0);
        assert_eq!(sampled.metrics["aio.in_flight_max"], 7.0);
        assert_eq!(sampled.metrics["aio.COMPLETED_SHARED"], 1.0);
        assert_eq!(sampled.series["aio.in_flight"], [[6.0, 6.0], [2.0, 2.0]]);
        assert_eq!(seen(&[0.0, 0.0]), Sampled::default());
    }
}
