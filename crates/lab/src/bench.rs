//! What one run has at hand: its cell, its server on its own data, cold and warm, and a folder for
//! raw files.
//!
//! An experiment asks for a session and gets a running server; what it starts is stopped for it,
//! whatever happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_servers::{
    ConnectOptions, ConnectionTarget, Installation, RunAs, Server, Session, StartOptions, StopMode,
};

use crate::asking::number;
use crate::cell::{Arm, Cell};
use crate::environment;
use crate::error::{Error, Result};
use crate::experiment::Scale;
use crate::load::Driver;
use crate::samplers::{RunningSamplers, Sampled, WatchedServer};
use crate::servers_of_arms::{ColdStart, Data, Device, Site, warm};

/// A statement of an experiment may take a day.
const WALL_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// A server has this long to start: recovery of a large cluster takes its time.
const START_LIMIT: Duration = Duration::from_secs(300);

/// One run's workplace.
#[derive(Debug)]
pub struct Bench<'a> {
    pub(crate) site: &'a mut Site,
    pub(crate) cell: &'a Cell,
    pub(crate) arm: &'a Arm,
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
    pub(crate) installation: Installation,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) data: Data,
    pub(crate) server: Option<Server>,
    pub(crate) folder: PathBuf,
    pub(crate) log: String,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) overlaps: Vec<String>,
    pub(crate) processors: Option<u32>,
    pub(crate) watching: Option<RunningSamplers>,
    pub(crate) seen: Vec<Sampled>,
}

impl Bench<'_> {
    /// What is run.
    pub fn cell(&self) -> &Cell {
        self.cell
    }

    /// The arm of the cell.
    pub fn arm(&self) -> &Arm {
        self.arm
    }

    /// How large.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Makes the data of this block; equal for all runs of a block.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The programs of this run's server.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The user that servers and tools run as.
    pub fn run_as(&self) -> &RunAs {
        self.site.run_as()
    }

    /// The data directory.
    pub fn pgdata(&self) -> &Path {
        match &self.data {
            Data::Files { pgdata, .. } => pgdata,
            Data::Schema { .. } => panic!("an experiment that runs by URL asks for no files"),
        }
    }

    /// Whether processes of the server can be looked at here, under the numbers that it gives them.
    pub fn is_on_this_machine(&self) -> bool {
        let given = self.site.given.as_ref();
        given.is_none_or(|given| given.target().is_on_this_machine())
    }

    /// The run's folder for raw files; what lies there when the run ends is kept beside its
    /// results.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The disk below the data directory, where it can be told.
    pub fn device(&self) -> Option<Device> {
        Device::of(self.pgdata())
    }

    /// An error when somebody wants the program to stop; for long loops.
    pub fn check_interrupted(&self) -> Result<()> {
        self.site.check_interrupted()
    }

    /// A setting that the server gets at its next start. A server that is not ours gives it to
    /// sessions where it can, and else the run says that it was otherwise.
    pub fn set(&mut self, name: &str, value: &str) {
        let given = self.site.given.as_ref();
        if given.is_some_and(|given| !given.takes(name, value)) {
            self.overlap(format!("{name} stayed as the server at the URL has it"));
            return;
        }
        self.settings.insert(name.to_owned(), value.to_owned());
    }

    /// Keeps a raw file in the run's folder.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, bytes).map_err(Error::io("write", &path))
    }

    /// Notes a fact about server or machine.
    pub fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.environment.insert(name.to_owned(), value.into());
    }

    /// Notes that something else went on during the run.
    pub fn overlap(&mut self, words: impl Into<String>) {
        self.overlaps.push(words.into());
    }

    /// Our server, started if it is not running.
    pub fn server(&mut self) -> Result<&Server> {
        self.check_interrupted()?;
        assert!(
            self.site.given.is_none(),
            "an experiment that runs by URL starts no server"
        );
        if self.server.is_none() {
            self.start()?;
        }
        self.server.as_ref().ok_or_else(not_running)
    }

    fn start(&mut self) -> Result<()> {
        let options = StartOptions {
            settings: self.settings.clone().into_iter().collect(),
            timeout: START_LIMIT,
            ..StartOptions::default()
        };
        let (run_as, pgdata) = (self.site.run_as().clone(), self.pgdata().to_path_buf());
        let started = Server::start(&self.installation, &run_as, &pgdata, &options);
        if let Err(pgclinic_servers::Error::NotStarted { log, .. }) = &started {
            self.log.push_str(log);
        }
        let server = started?;
        let first = !self.environment.contains_key("server_version");
        let postmaster = server.pid();
        self.server = Some(server);
        self.bound(postmaster)?;
        if first {
            let mut session = self.connect()?;
            self.note_server(&mut session)?;
        }
        self.watch_from_the_start();
        Ok(())
    }

    /// Version, and every setting that is not what PostgreSQL ships.
    fn note_server(&mut self, session: &mut Session) -> Result<()> {
        let rows = session
            .query(
                "SELECT name, setting || coalesce(' ' || unit, '') FROM pg_settings \
                 WHERE setting IS DISTINCT FROM boot_val AND source NOT IN ('default', 'override', 'client') \
                 AND name !~ '(director|_file$|^log_|^lc_|^data_)'",
            )
            .map_err(Error::sql("asking for the settings"))?;
        let version = self.installation.version.clone();
        self.fact("server_version", version);
        self.note_place();
        let build =
            environment::server(session).map_err(Error::sql("asking how the server was built"))?;
        self.environment.extend(build);
        for row in rows {
            if let [Some(name), Some(value)] = row.as_slice() {
                self.fact(&format!("setting.{name}"), value.clone());
            }
        }
        Ok(())
    }

    /// Where the server is, and what machine it has, where that can be told.
    fn note_place(&mut self) {
        let Some(given) = &self.site.given else {
            let programs = self.installation.bindir.display().to_string();
            self.fact("server_programs", programs);
            let machine = environment::machine(self.pgdata());
            self.environment.extend(machine);
            return;
        };
        let url = given.target().to_string();
        self.fact("server_url", url);
        if self.is_on_this_machine() {
            let machine = environment::machine(Path::new("/"));
            self.environment.extend(machine);
        }
    }

    /// A session as the superuser in the database `postgres`, or as the URL has it.
    pub fn connect(&mut self) -> Result<Session> {
        match &self.site.given {
            None => self.connect_to("postgres", &[]),
            Some(given) => {
                let database = given.target().database.clone();
                self.connect_to(&database, &[])
            }
        }
    }

    /// Settings that sessions on a server that is not ours start with.
    fn session_settings(&self) -> Vec<(String, String)> {
        match (&self.site.given, &self.data) {
            (Some(given), Data::Schema { name, .. }) => {
                given.session_settings(name, &self.settings)
            }
            _ => Vec::new(),
        }
    }

    /// Where a load goes.
    pub(crate) fn target(&mut self) -> Result<ConnectionTarget> {
        let mut target = match &self.site.given {
            Some(given) if self.site.driver() == Driver::BuiltIn => {
                let target = given.target().clone();
                target.without_tls().map_err(Error::Refused)?
            }
            Some(given) => given.target().clone(),
            None => ConnectionTarget::of(self.server()?, "postgres"),
        };
        target.settings.extend(self.session_settings());
        Ok(target)
    }

    /// What samplers are told of the server.
    pub(crate) fn place(&self) -> WatchedServer {
        let pgdata = match &self.data {
            Data::Files { pgdata, .. } => Some(pgdata.clone()),
            Data::Schema { .. } => None,
        };
        WatchedServer {
            major: self.installation.major,
            pgdata,
        }
    }

    /// A session in this database with these settings.
    pub fn connect_to(&mut self, database: &str, settings: &[(&str, &str)]) -> Result<Session> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        if self.site.given.is_some() {
            return self.connect_by_url(database, settings.iter().map(own).collect());
        }
        let options = ConnectOptions {
            wall_limit: WALL_LIMIT,
            settings: settings.iter().map(own).collect(),
            ..ConnectOptions::default()
        };
        self.server()?
            .connect_with(database, &options)
            .map_err(Error::sql(format!("connecting to {database}")))
    }

    fn connect_by_url(&mut self, database: &str, own: Vec<(String, String)>) -> Result<Session> {
        self.check_interrupted()?;
        let mut settings = self.session_settings();
        settings.extend(own);
        let given = self.site.given.as_ref();
        let session = given.map(|given| given.connect(database, &settings));
        let mut session = session.ok_or_else(not_running)??;
        if !self.environment.contains_key("server_version") {
            self.note_server(&mut session)?;
            self.note_others(&mut session)?;
            self.watch_from_the_start();
        }
        Ok(session)
    }

    /// Who else is on a server that is not ours.
    fn note_others(&mut self, session: &mut Session) -> Result<()> {
        let others = number(
            session,
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name NOT LIKE 'pgclinic%'",
        )?;
        if others > 0.0 {
            self.overlap(format!(
                "{others} other sessions were on the server: WAL and transaction numbers count theirs too"
            ));
        }
        Ok(())
    }

    /// Stops the server, if it runs, and keeps its log.
    pub fn stop(&mut self, mode: StopMode) -> Result<()> {
        self.watched();
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let stopped = server.stop(mode);
        self.log.push_str(&server.log());
        Ok(stopped?)
    }

    /// Stops the server with a checkpoint and starts it again, with what [`Bench::set`] has
    /// changed.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(StopMode::Fast)?;
        self.server().map(|_| ())
    }

    /// Restarts the server with none of its files in any cache of this machine; the answer proves
    /// it afterwards.
    pub fn cold(&mut self) -> Result<ColdStart> {
        self.watching = None;
        self.stop(StopMode::Fast)?;
        ColdStart::empty_caches(self.pgdata())?;
        self.server()?;
        // What the start itself has read does not count as proof.
        Ok(ColdStart::now(self.pgdata()))
    }

    /// Reads relations, their indexes and long values into the server's buffers; gives the number
    /// of pages.
    pub fn warm(&mut self, relations: &[&str]) -> Result<u64> {
        let mut session = self.connect()?;
        let pgdata = match &self.data {
            Data::Files { pgdata, .. } => Some(pgdata.as_path()),
            Data::Schema { .. } => None,
        };
        let warmth = warm(&mut session, relations, pgdata)?;
        self.environment.extend(warmth.facts());
        self.overlaps.extend(warmth.doubt());
        Ok(warmth.pages)
    }

    /// Ends the run's server. A shared base is stopped cleanly, a copy as it stands; a schema of
    /// this run alone is dropped.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.watched();
        let ended = self.end();
        self.keep_what_was_watched()?;
        ended
    }

    fn end(&mut self) -> Result<()> {
        if let Data::Schema { name, is_shared } = &self.data {
            let given = self.site.given.as_mut().filter(|_| !is_shared);
            return given.map_or(Ok(()), |given| given.drop_schema(name));
        }
        if self.data.is_shared() {
            self.stop(StopMode::Fast)
        } else {
            self.stop(StopMode::Immediate)
        }
    }
}

fn not_running() -> Error {
    Error::Refused("the server is not running".to_owned())
}
