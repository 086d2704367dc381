//! What one run has at hand: its cell, its server on its own data, cold and warm, and a folder for raw files.
//!
//! An experiment asks for a session and gets a running server; what it starts is stopped for it, whatever happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_servers::{
    ConnectOptions, Installation, RunAs, Server, Session, StartOptions, StopMode,
};

use crate::cell::{Arm, Cell};
use crate::environment;
use crate::error::{Error, Result};
use crate::experiment::Scale;
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
        &self.data.pgdata
    }

    /// The run's folder for raw files; what lies there when the run ends is kept beside its results.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The disk below the data directory, where it can be told.
    pub fn device(&self) -> Option<Device> {
        Device::of(&self.data.pgdata)
    }

    /// An error when somebody wants the program to stop; for long loops.
    pub fn check_interrupted(&self) -> Result<()> {
        self.site.check_interrupted()
    }

    /// A setting that the server gets at its next start.
    pub fn set(&mut self, name: &str, value: &str) {
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

    /// The server, started if it is not running.
    pub fn server(&mut self) -> Result<&Server> {
        self.check_interrupted()?;
        if self.server.is_none() {
            self.start()?;
        }
        self.server
            .as_ref()
            .ok_or_else(|| Error::Refused("the server is not running".to_owned()))
    }

    fn start(&mut self) -> Result<()> {
        let options = StartOptions {
            settings: self.settings.clone().into_iter().collect(),
            timeout: START_LIMIT,
        };
        let (run_as, pgdata) = (self.site.run_as().clone(), self.data.pgdata.clone());
        let server = Server::start(&self.installation, &run_as, &pgdata, &options)?;
        let first = !self.environment.contains_key("server_version");
        self.server = Some(server);
        if first {
            self.note_server()?;
        }
        Ok(())
    }

    /// Version, and every setting that is not what PostgreSQL ships.
    fn note_server(&mut self) -> Result<()> {
        let mut session = self.connect()?;
        let rows = session
            .query(
                "SELECT name, setting || coalesce(' ' || unit, '') FROM pg_settings \
                 WHERE setting IS DISTINCT FROM boot_val AND source NOT IN ('default', 'override', 'client') \
                 AND name !~ '(director|_file$|^log_|^lc_|^data_)'",
            )
            .map_err(Error::sql("asking for the settings"))?;
        let version = self.installation.version.clone();
        self.fact("server_version", version);
        let programs = self.installation.bindir.display().to_string();
        self.fact("server_programs", programs);
        let machine = environment::machine(&self.data.pgdata);
        let build = environment::server(&mut session)
            .map_err(Error::sql("asking how the server was built"))?;
        self.environment.extend(machine);
        self.environment.extend(build);
        for row in rows {
            if let [Some(name), Some(value)] = row.as_slice() {
                self.fact(&format!("setting.{name}"), value.clone());
            }
        }
        Ok(())
    }

    /// A session as the superuser in the database `postgres`.
    pub fn connect(&mut self) -> Result<Session> {
        self.connect_to("postgres", &[])
    }

    /// A session in this database with these settings.
    pub fn connect_to(&mut self, database: &str, settings: &[(&str, &str)]) -> Result<Session> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let options = ConnectOptions {
            wall_limit: WALL_LIMIT,
            settings: settings.iter().map(own).collect(),
            ..ConnectOptions::default()
        };
        self.server()?
            .connect_with(database, &options)
            .map_err(Error::sql(format!("connecting to {database}")))
    }

    /// Stops the server, if it runs, and keeps its log.
    pub fn stop(&mut self, mode: StopMode) -> Result<()> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let stopped = server.stop(mode);
        self.log.push_str(&server.log());
        Ok(stopped?)
    }

    /// Stops the server with a checkpoint and starts it again, with what [`Bench::set`] has changed.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(StopMode::Fast)?;
        self.server().map(|_| ())
    }

    /// Restarts the server with none of its files in any cache of this machine; the answer proves it afterwards.
    pub fn cold(&mut self) -> Result<ColdStart> {
        self.stop(StopMode::Fast)?;
        ColdStart::empty_caches(&self.data.pgdata)?;
        self.server()?;
        // What the start itself has read does not count as proof.
        Ok(ColdStart::now(&self.data.pgdata))
    }

    /// Reads relations, their indexes and long values into the server's buffers; gives the number of pages.
    pub fn warm(&mut self, relations: &[&str]) -> Result<u64> {
        let mut session = self.connect()?;
        warm(&mut session, relations)
    }

    /// Ends the run's server. A shared base is stopped cleanly, a copy as it stands.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.data.is_shared() {
            true => self.stop(StopMode::Fast),
            false => self.stop(StopMode::Immediate),
        }
    }
}
