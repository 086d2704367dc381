//! One server, one read-only session, and the last two readings of each statement.
//!
//! A session that ends is opened again at the next sample. A server that was restarted begins again
//! with its first reading: what its counters did meanwhile is unknown.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pgclinic_model::document::{SignState, Target, WatchedTarget};
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

use crate::assess::{self, Sample};
use crate::facts::ServerFacts;
use crate::log::ServerLog;
use crate::machine::Machine;
use crate::measured::MeasuredStatus;
use crate::probe::{Probe, Reading, Table};
use crate::scrub::{FileSources, ScrubStatus, ServerOnDisk};
use crate::signs;

/// A lock that somebody holds is not waited for.
const LOCK_TIMEOUT: &str = "100ms";
/// Longer than a statement, so that the server's own word comes first.
const BEYOND_STATEMENT: Duration = Duration::from_secs(3);

/// How a server is asked.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The server ends a statement after this.
    pub statement_timeout: Duration,
    /// What is known of this machine.
    pub machine: Option<Machine>,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            statement_timeout: Duration::from_secs(3),
            machine: None,
        }
    }
}

/// Which statements a sample runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoroughness {
    /// Those that are due.
    Due,
    /// All of them.
    All,
}

/// The readings of one statement.
#[derive(Debug)]
pub(crate) struct Readings {
    /// The last one.
    pub(crate) now: Reading,
    /// The last one that gave figures.
    last: Option<Arc<Table>>,
    /// The one before that, where there was one since the server started.
    pub(crate) before: Option<Arc<Table>>,
    /// The first one since the server started, of each figure since it was reset.
    pub(crate) first: Option<Arc<Table>>,
    /// Why there is no reading before.
    pub(crate) broken: Option<String>,
    read_at: Instant,
}

/// A server that is watched.
#[derive(Debug)]
pub struct Watcher {
    target: ConnectionTarget,
    options: WatchOptions,
    session: Option<Session>,
    facts: ServerFacts,
    readings: BTreeMap<&'static str, Readings>,
    machine_facts: BTreeMap<String, String>,
    restarted: bool,
    asked_at: Option<Instant>,
    clock_jump: Option<f64>,
    complete_at: Option<f64>,
    sample_s: Option<f64>,
    files: FileSources,
    scrub: Option<ScrubStatus>,
    measured: Option<MeasuredStatus>,
    log: ServerLog,
}

impl Watcher {
    /// A server that was not asked yet.
    pub fn new(target: ConnectionTarget, options: WatchOptions) -> Self {
        Self {
            target,
            options,
            session: None,
            facts: ServerFacts::default(),
            readings: BTreeMap::new(),
            machine_facts: BTreeMap::new(),
            restarted: false,
            asked_at: None,
            clock_jump: None,
            complete_at: None,
            sample_s: None,
            files: FileSources::default(),
            scrub: None,
            measured: None,
            log: ServerLog::default(),
        }
    }

    /// With what works on the server's files.
    #[must_use]
    pub fn with_files(mut self, files: FileSources) -> Self {
        self.files = files;
        self
    }

    /// Reads every sign that is due; a server that does not answer is no error but an answer.
    pub fn sample(&mut self, thoroughness: Thoroughness) -> WatchedTarget {
        let asked = self.read(thoroughness);
        self.shown(&asked)
    }

    /// Reads every sign that is due.
    pub(crate) fn read(&mut self, thoroughness: Thoroughness) -> Result<(), SqlError> {
        let begin = Instant::now();
        let had_session = self.session.is_some();
        let mut asked = self.ask(thoroughness);
        // A session that ended since says nothing of the server.
        if asked.is_err() && had_session {
            asked = self.ask(thoroughness);
        }
        self.sample_s = Some(begin.elapsed().as_secs_f64());
        if asked.is_err() {
            self.session = None;
        } else if !self.present().is_refused(signs::probes().into_iter()) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
            self.complete_at = now.map(|now| now.as_secs_f64());
        }
        asked
    }

    /// What came of the last reading.
    pub(crate) fn shown(&self, asked: &Result<(), SqlError>) -> WatchedTarget {
        match asked {
            Ok(()) => self.document(),
            Err(error) => self.unreachable(error),
        }
    }

    fn ask(&mut self, thoroughness: Thoroughness) -> Result<(), SqlError> {
        let mut session = match self.session.take().filter(|session| !session.is_over()) {
            Some(session) => session,
            None => self.open()?,
        };
        let facts = ServerFacts::read(&mut session, self.target.is_on_this_machine())?;
        self.take_facts(facts);
        for probe in signs::probes() {
            if self.is_due(probe, thoroughness) {
                let reading = probe.read(&mut session, &self.facts)?;
                self.take(probe, reading);
            }
        }
        let server = self.on_disk();
        self.log.read(&mut session, &server, &self.facts)?;
        session.take_messages();
        self.session = Some(session);
        let FileSources { scrub, measured } = &self.files;
        self.scrub = scrub.as_ref().and_then(|own| own.ask(&server));
        self.measured = measured.as_ref().and_then(|own| own.ask(&server));
        Ok(())
    }

    fn on_disk(&self) -> ServerOnDisk {
        ServerOnDisk {
            data_directory: self.facts.shown("data_directory").map(PathBuf::from),
            system_identifier: self.facts.system_identifier.clone(),
            started: self.facts.started,
        }
    }

    /// Nothing that it runs can write, wait for a lock or be shadowed by a schema of somebody else.
    fn open(&self) -> Result<Session, SqlError> {
        let statement = self.options.statement_timeout;
        let options = ConnectOptions {
            statement_timeout: Some(statement),
            wall_limit: statement + BEYOND_STATEMENT,
            open_limit: Some(statement + BEYOND_STATEMENT),
            settings: [
                ("default_transaction_read_only", "on"),
                ("lock_timeout", LOCK_TIMEOUT),
                ("search_path", "pg_catalog"),
                ("DateStyle", "ISO"),
                ("TimeZone", "UTC"),
                ("extra_float_digits", "1"),
                ("jit", "off"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            ..ConnectOptions::default()
        };
        Session::open(&self.target, &options)
    }

    /// Notes a restart, and a clock that was set: both by what the server says of itself.
    fn take_facts(&mut self, facts: ServerFacts) {
        let (asked_at, now) = (self.asked_at, Instant::now());
        let was_up = asked_at.is_some();
        self.restarted = was_up && (facts.started - self.facts.started).abs() > 1e-3;
        let ours = asked_at.map(|asked_at| (now - asked_at).as_secs_f64());
        self.clock_jump = ours.map(|ours| facts.clock - self.facts.clock - ours);
        if self.restarted || facts.is_standby != self.facts.is_standby {
            self.readings.clear();
        }
        self.facts = ServerFacts {
            is_scrubbed: self.files.scrub.is_some(),
            is_measured: self.files.measured.is_some(),
            ..facts
        };
        self.asked_at = Some(now);
        if self.machine_facts.is_empty() {
            self.machine_facts = self.facts_of_machine();
        }
    }

    /// Of a server that is surely here; without its data directory nothing is known of its disk.
    fn facts_of_machine(&self) -> BTreeMap<String, String> {
        let directory = self.facts.shown("data_directory").map(Path::new);
        let machine = self.options.machine.filter(|_| self.facts.is_local);
        match (machine, directory) {
            (Some(machine), Some(directory)) if directory.is_dir() => (machine.facts)(directory),
            _ => BTreeMap::new(),
        }
    }

    fn is_due(&self, probe: &Probe, thoroughness: Thoroughness) -> bool {
        let Some(own) = self.readings.get(probe.name) else {
            return true;
        };
        thoroughness == Thoroughness::All
            || own.read_at.elapsed() >= Duration::from_secs(probe.every_s)
    }

    fn take(&mut self, probe: &'static Probe, reading: Reading) {
        let old = self.readings.remove(probe.name);
        let (first, last) = old.map_or((None, None), |old| (old.first, old.last));
        let mut own = Readings {
            now: reading,
            last: None,
            before: None,
            first: None,
            broken: self
                .restarted
                .then(|| "the server was restarted between the two samples".to_owned()),
            read_at: Instant::now(),
        };
        match &own.now {
            // What it refused once is no reason to begin again.
            Reading::Missing(_) | Reading::Refused(_) => (own.first, own.last) = (first, last),
            Reading::Table(now) => {
                own.first = first.or_else(|| last.clone()).map(|mut first| {
                    if first.is_reset_in(now) {
                        Arc::make_mut(&mut first).begin_again(now);
                    }
                    first
                });
                own.before = last;
                own.last = Some(Arc::clone(now));
            }
        }
        self.readings.insert(probe.name, own);
    }

    fn present(&self) -> Sample<'_> {
        Sample {
            facts: &self.facts,
            readings: &self.readings,
            machine: self
                .options
                .machine
                .as_ref()
                .filter(|_| self.facts.is_local),
            machine_facts: &self.machine_facts,
            restarted: self.restarted,
            clock_jump: self.clock_jump,
            sample_s: self.sample_s,
            scrub: self.scrub.as_ref(),
            measured: self.measured.as_ref(),
            log: Some(&self.log),
        }
    }

    fn document(&self) -> WatchedTarget {
        let sample = self.present();
        let signs = signs::signs().map(|sign| assess::sign(sign, &sample));
        // With no room to spare: this is kept as long as the sample is shown.
        let signs = Vec::from(signs.collect::<Box<[_]>>());
        let scrub = self.scrub.as_ref();
        WatchedTarget {
            target: self.described(),
            server_version: Some(self.facts.version.clone()),
            is_standby: Some(self.facts.is_standby),
            complete_at: self.complete_at,
            server_started_at: Some(self.facts.started),
            sample_s: self.sample_s.unwrap_or_default(),
            unreachable: None,
            state: signs.iter().map(|own| own.state).max().unwrap_or_default(),
            advice: signs::advice(&sample),
            damaged_pages: scrub.map(|own| own.places.clone()).unwrap_or_default(),
            damaged_pages_omitted: scrub.map_or(0, |own| own.places_omitted),
            logged: self.log.kinds(),
            signs,
        }
    }

    fn unreachable(&self, error: &SqlError) -> WatchedTarget {
        let is_known = self.facts.major > 0;
        WatchedTarget {
            target: self.described(),
            server_version: is_known.then(|| self.facts.version.clone()),
            is_standby: is_known.then_some(self.facts.is_standby),
            complete_at: self.complete_at,
            server_started_at: is_known.then_some(self.facts.started),
            sample_s: self.sample_s.unwrap_or_default(),
            unreachable: Some(why_unreachable(error)),
            state: SignState::Critical,
            signs: Vec::new(),
            advice: Vec::new(),
            damaged_pages: Vec::new(),
            damaged_pages_omitted: 0,
            logged: Vec::new(),
        }
    }

    fn described(&self) -> Target {
        let is_known = self.facts.major > 0;
        let checksums = self.facts.shown("data_checksums");
        let state = if self.facts.is_standby {
            "in archive recovery"
        } else {
            "running"
        };
        Target {
            spec: self.target.to_string(),
            kind: "server".to_owned(),
            major: is_known.then_some(self.facts.major),
            system_identifier: self.facts.system_identifier.clone(),
            block_size: None,
            segment_size: None,
            checksums: checksums.map(|own| own == "on"),
            state: is_known.then(|| state.to_owned()),
        }
    }
}

/// In words that say what to do, where the bare error would not.
fn why_unreachable(error: &SqlError) -> String {
    let why = match error {
        SqlError::Server(message) if message.sqlstate == "28P01" => {
            format!("the password was refused: {}", message.message)
        }
        SqlError::Server(message) if message.sqlstate.starts_with("28") => {
            format!("the login was refused: {}", message.message)
        }
        SqlError::Io(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
        {
            "it accepts the connection and does not answer: it hangs, or is stopped".to_owned()
        }
        // It is no breach of the protocol that somebody has no password.
        SqlError::Protocol(why) if why.starts_with("the server asks for a password") => why.clone(),
        other => other.to_string(),
    };
    let why = why.replace('\n', " ");
    match certificate(&why) {
        Some(meaning) => format!("{why}: {meaning}"),
        None => why,
    }
}

/// What the bare words of a refused certificate leave open.
fn certificate(why: &str) -> Option<&'static str> {
    let known = [
        (
            "CaUsedAsEndEntity",
            "the server's certificate is that of an authority (CA:TRUE), which stands for no server; one with \
             CA:FALSE, or one that the authority has signed, is taken",
        ),
        (
            "UnknownIssuer",
            "no certificate of sslrootcert has signed that of the server",
        ),
    ];
    let mut known = known.into_iter();
    known.find_map(|(word, meaning)| why.contains(word).then_some(meaning))
}
