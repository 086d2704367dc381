//! Many servers, asked side by side, and the history of each sign since the start.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use pgclinic_model::document::{Tool, WATCH_SCHEMA, WatchDocument, WatchedTarget};
use pgclinic_servers::ConnectionTarget;

use crate::scrub::ScrubSource;
use crate::watcher::{Thoroughness, WatchOptions, Watcher};

/// Points of a sparkline. History belongs to Prometheus.
const POINTS_MAX: usize = 120;

type History = BTreeMap<String, VecDeque<f64>>;

/// The servers that a run watches.
#[derive(Debug)]
pub struct WatchedServers {
    watchers: Vec<Watcher>,
    histories: Vec<History>,
    interval: Duration,
    begun: Instant,
}

impl WatchedServers {
    /// Servers that were not asked yet.
    pub fn new(targets: Vec<ConnectionTarget>, options: &WatchOptions, interval: Duration) -> Self {
        let watcher = |target| Watcher::new(target, options.clone());
        Self {
            histories: vec![History::new(); targets.len()],
            watchers: targets.into_iter().map(watcher).collect(),
            interval,
            begun: Instant::now(),
        }
    }

    /// With a scrub of the files of each server, made for it by this.
    #[must_use]
    pub fn with_scrubs(mut self, source: impl Fn() -> ScrubSource) -> Self {
        let watchers = self.watchers.into_iter();
        self.watchers = watchers.map(|own| own.with_scrub(source())).collect();
        self
    }

    /// Asks all servers at once; one that hangs keeps the others waiting for its limits at most.
    pub fn sample(&mut self, thoroughness: Thoroughness) -> WatchDocument {
        let mut targets = asked(&mut self.watchers, thoroughness);
        for (target, history) in targets.iter_mut().zip(&mut self.histories) {
            remember(target, history);
        }
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            tool: Tool::this(),
            interval_s: self.interval.as_secs_f64(),
            targets,
            elapsed_s: self.begun.elapsed().as_secs_f64(),
        }
    }
}

fn asked(watchers: &mut [Watcher], thoroughness: Thoroughness) -> Vec<WatchedTarget> {
    if let [only] = watchers {
        return vec![only.sample(thoroughness)];
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = watchers
            .iter_mut()
            .map(|own| scope.spawn(move || own.sample(thoroughness)))
            .collect();
        let ended = threads.into_iter().map(|own| own.join());
        ended
            .map(|own| own.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn remember(target: &mut WatchedTarget, history: &mut History) {
    for sign in &mut target.signs {
        let Some(headline) = sign.headline else {
            continue;
        };
        let points = history.entry(sign.name.clone()).or_default();
        points.push_back(headline);
        if points.len() > POINTS_MAX {
            points.pop_front();
        }
        sign.history = points.iter().copied().collect();
    }
}
