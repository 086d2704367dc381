//! Many servers, each asked by a thread of its own, and the history of each sign since the start.
//!
//! A server that does not answer keeps nobody waiting: after a while the others are shown without
//! it, and its last answer is shown until that is too old.
//!
//! What was read goes from the thread to the one that asks for documents, which makes them: were
//! they made in fifty threads, the memory of each would keep as much as one takes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgclinic_model::document::{
    SignState, Target, Tool, WATCH_SCHEMA, WatchDocument, WatchedTarget,
};
use pgclinic_servers::{ConnectionTarget, SqlError};

use crate::scrub::FileSources;
use crate::watcher::{Thoroughness, WatchOptions, Watcher};

/// Points of a sparkline. History belongs to Prometheus.
const POINTS_MAX: usize = 120;
/// A document has to have every server that answers at all.
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(60);
/// Beside others, a server is waited for by this part of the interval, within these limits.
const PATIENCE_PART: f64 = 0.5;
const PATIENCE_MIN_S: f64 = 1.0;
const PATIENCE_MAX_S: f64 = 5.0;
/// The last answer of a server is shown for as long; after that it gives none.
const STALE: Duration = Duration::from_secs(15);

type History = BTreeMap<String, VecDeque<f64>>;

/// The servers that a run watches.
#[derive(Debug)]
pub struct WatchedServers {
    servers: Vec<OwnThread>,
    histories: Vec<History>,
    interval: Duration,
    begun: Instant,
}

/// A watcher on its way to its thread, and back with what came of it.
type Request = (Box<Watcher>, Thoroughness);
type Answer = (Box<Watcher>, Result<(), SqlError>);

/// A server with the thread that asks it.
#[derive(Debug)]
struct OwnThread {
    spec: String,
    /// Nothing while its thread has it.
    watcher: Option<Box<Watcher>>,
    requests: Sender<Request>,
    answers: Receiver<Answer>,
    asked_at: Option<Instant>,
    last: Option<WatchedTarget>,
    files: FileSources,
}

impl WatchedServers {
    /// Servers that were not asked yet, each with what works on its files, made for it by this.
    pub fn new(
        targets: Vec<ConnectionTarget>,
        options: &WatchOptions,
        interval: Duration,
        files: impl Fn() -> FileSources,
    ) -> Self {
        let server = |target| OwnThread::start(target, options, files());
        Self {
            histories: vec![History::new(); targets.len()],
            servers: targets.into_iter().map(server).collect(),
            interval,
            begun: Instant::now(),
        }
    }

    /// Asks all servers at once.
    pub fn sample(&mut self, thoroughness: Thoroughness) -> WatchDocument {
        let patience = match (thoroughness, self.servers.len()) {
            (Thoroughness::All, _) | (_, 1) => PATIENCE_FOR_ALL,
            (Thoroughness::Due, _) => {
                let part = self.interval.as_secs_f64() * PATIENCE_PART;
                Duration::from_secs_f64(part.clamp(PATIENCE_MIN_S, PATIENCE_MAX_S))
            }
        };
        for server in &mut self.servers {
            server.ask(thoroughness);
        }
        let end = Instant::now() + patience;
        let mut targets: Vec<_> = self.servers.iter_mut().map(|own| own.answer(end)).collect();
        for (target, history) in targets.iter_mut().zip(&mut self.histories) {
            remember(target, history);
        }
        WatchDocument {
            schema: WATCH_SCHEMA.to_owned(),
            tool: Tool::this(),
            interval_s: self.interval.as_secs_f64(),
            targets,
            deliveries: Vec::new(),
            elapsed_s: self.begun.elapsed().as_secs_f64(),
        }
    }
}

impl Drop for WatchedServers {
    /// Threads end by themselves, those that wait for a server when it has answered. What works on
    /// files ends now.
    fn drop(&mut self) {
        for server in &self.servers {
            server.files.end();
        }
    }
}

impl OwnThread {
    fn start(target: ConnectionTarget, options: &WatchOptions, files: FileSources) -> Self {
        let spec = target.to_string();
        let watcher = Watcher::new(target, options.clone()).with_files(files.clone());
        let (requests, inbox) = channel();
        let (outbox, answers) = channel();
        std::thread::spawn(move || answer_all(&inbox, &outbox));
        Self {
            spec,
            watcher: Some(Box::new(watcher)),
            requests,
            answers,
            asked_at: None,
            last: None,
            files,
        }
    }

    /// Once, until it has answered.
    fn ask(&mut self, thoroughness: Thoroughness) {
        if let Some(watcher) = self.watcher.take()
            && self.requests.send((watcher, thoroughness)).is_ok()
        {
            self.asked_at = Some(Instant::now());
        }
    }

    fn answer(&mut self, end: Instant) -> WatchedTarget {
        let left = end.saturating_duration_since(Instant::now());
        match self.answers.recv_timeout(left) {
            Ok((watcher, asked)) => {
                let answer = watcher.shown(&asked);
                self.watcher = Some(watcher);
                self.asked_at = None;
                self.last = Some(answer.clone());
                answer
            }
            Err(RecvTimeoutError::Timeout) => {
                let waited = self.asked_at.map(|at| at.elapsed()).unwrap_or_default();
                let last = self.last.clone().filter(|_| waited < STALE);
                let why = format!("no answer for {:.0} s", waited.as_secs_f64());
                last.unwrap_or_else(|| self.silent(why))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.silent("what asks it has failed: this is a bug of pgclinic".to_owned())
            }
        }
    }

    /// With what was known of it before.
    fn silent(&self, why: String) -> WatchedTarget {
        let last = self.last.as_ref();
        let unknown = || Target {
            spec: self.spec.clone(),
            kind: "server".to_owned(),
            ..Target::default()
        };
        WatchedTarget {
            target: last.map_or_else(unknown, |own| own.target.clone()),
            server_version: last.and_then(|own| own.server_version.clone()),
            is_standby: last.and_then(|own| own.is_standby),
            complete_at: last.and_then(|own| own.complete_at),
            server_started_at: last.and_then(|own| own.server_started_at),
            sample_s: last.map_or(0.0, |own| own.sample_s),
            unreachable: Some(why),
            state: SignState::Critical,
            signs: Vec::new(),
            advice: Vec::new(),
            damaged_pages: Vec::new(),
            damaged_pages_omitted: 0,
            logged: Vec::new(),
        }
    }
}

fn answer_all(inbox: &Receiver<Request>, outbox: &Sender<Answer>) {
    while let Ok((mut watcher, thoroughness)) = inbox.recv() {
        let asked = watcher.read(thoroughness);
        if outbox.send((watcher, asked)).is_err() {
            return;
        }
    }
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
