//! One running postmaster, started directly (`src/backend/postmaster/postmaster.c`) and watched
//! through the last line of its `postmaster.pid` (`src/include/utils/pidfile.h`), which says when
//! it is ready.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::initdb::tail;
use crate::installation::Installation;
use crate::message::SqlError;
use crate::run_as::RunAs;
use crate::scratch::Scratch;
use crate::session::{ConnectOptions, Login, Session};
use crate::target::ConnectionTarget;
use crate::{process, running, settings, spawn, sweep};

/// The superuser of clusters that are made here.
const SUPERUSER: &str = "postgres";
/// How often a starting or stopping server is looked at.
const STEP: Duration = Duration::from_millis(3);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// Settings beside and above the built-in ones (`autovacuum`, `fsync` and the like are off by
    /// default).
    pub settings: Vec<(String, String)>,
    /// The superuser with which the cluster was made.
    pub superuser: String,
    /// A server that is not ready by then is killed; recovery of a crashed cluster counts too.
    pub timeout: Duration,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            settings: Vec::new(),
            superuser: SUPERUSER.to_owned(),
            timeout: Duration::from_secs(60),
        }
    }
}

impl StartOptions {
    /// The same with one more setting.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// How a server is asked to stop, as in `pg_ctl stop -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Waits for the sessions to end.
    Smart,
    /// Ends the sessions, writes a checkpoint.
    Fast,
    /// Ends everything as it stands: the cluster needs recovery.
    Immediate,
}

/// A running server on a private socket. Dropping it stops it at once, without a checkpoint.
#[derive(Debug)]
pub struct Server {
    installation: Installation,
    pgdata: PathBuf,
    superuser: String,
    child: Child,
    ended: bool,
    scratch: Scratch,
}

impl Server {
    /// Starts a server on `pgdata`, which the server's user owns, and waits until it takes
    /// connections.
    pub fn start(
        installation: &Installation,
        run_as: &RunAs,
        pgdata: &Path,
        options: &StartOptions,
    ) -> Result<Self> {
        let mut server = Self::launch(installation, run_as, pgdata, options)?;
        server.wait_until_ready(options.timeout)?;
        Ok(server)
    }

    /// Starts a server that is told to shut down by itself once recovery has come to its target,
    /// and waits for that. Gives its log.
    pub(crate) fn recover(
        installation: &Installation,
        run_as: &RunAs,
        pgdata: &Path,
        options: &StartOptions,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<String> {
        let mut server = Self::launch(installation, run_as, pgdata, options)?;
        server.wait_until_ended(options.timeout, is_interrupted)?;
        Ok(server.log())
    }

    fn launch(
        installation: &Installation,
        run_as: &RunAs,
        pgdata: &Path,
        options: &StartOptions,
    ) -> Result<Self> {
        let scratch = Scratch::new(run_as, None)?;
        let log_path = scratch.path().join("log");
        let log = File::create_new(&log_path).map_err(Error::io("create", &log_path))?;
        let errors = log.try_clone().map_err(Error::io("open", &log_path))?;

        let program = installation.bindir.join("postgres");
        let mut command = spawn::server_command(&program, run_as);
        command
            .arg("-D")
            .arg(pgdata)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        command.arg("-c").arg(format!(
            "unix_socket_directories={}",
            scratch.path().display()
        ));
        for (name, value) in settings::defaults(installation.major) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        for (name, value) in &options.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = running::add_server(pgdata, || {
            spawn::spawn(command).map_err(|source| Error::Spawn {
                program,
                user: run_as.name.clone(),
                source,
            })
        })?;
        Ok(Self {
            installation: installation.clone(),
            pgdata: pgdata.to_path_buf(),
            superuser: options.superuser.clone(),
            child,
            ended: false,
            scratch,
        })
    }

    fn wait_until_ready(&mut self, timeout: Duration) -> Result<()> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.ended_with() {
                return Err(self.not_started(format!("it ended with {status}")));
            }
            if is_ready(&self.pgdata, self.pid()) {
                return Ok(());
            }
            if Instant::now() >= end {
                let why = format!(
                    "it was not ready after {:.1} s and was killed",
                    timeout.as_secs_f64()
                );
                self.kill();
                return Err(self.not_started(why));
            }
            std::thread::sleep(STEP);
        }
    }

    fn wait_until_ended(
        &mut self,
        timeout: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.ended_with() {
                let is_success = self
                    .child
                    .try_wait()
                    .is_ok_and(|own| own.is_some_and(|own| own.success()));
                return is_success
                    .then_some(())
                    .ok_or_else(|| self.not_recovered(format!("it ended with {status}")));
            }
            if is_interrupted() {
                self.kill();
                return Err(self.not_recovered("it was interrupted".into()));
            }
            if Instant::now() >= end {
                self.kill();
                let seconds = timeout.as_secs_f64();
                return Err(self.not_recovered(format!(
                    "it had not come to its end after {seconds:.0} s and was killed"
                )));
            }
            std::thread::sleep(STEP);
        }
    }

    fn not_recovered(&self, why: String) -> Error {
        Error::NotRecovered {
            why,
            log: self.log(),
        }
    }

    fn not_started(&self, why: String) -> Error {
        Error::NotStarted {
            pgdata: self.pgdata.clone(),
            why,
            log: tail(&self.log(), 20),
        }
    }

    /// The exit status once the postmaster has ended; from then on it is out of the list of running
    /// servers.
    fn ended_with(&mut self) -> Option<String> {
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.ended = true;
        running::forget_server(self.pid());
        Some(status)
    }

    /// The postmaster's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What runs.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The data directory.
    pub fn pgdata(&self) -> &Path {
        &self.pgdata
    }

    /// The folder of the socket, `host` for libpq; the port is 5432.
    pub fn socket_folder(&self) -> &Path {
        self.scratch.path()
    }

    /// What the server has logged so far; also after it stopped.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.scratch.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Connects as the superuser, with the built-in limits.
    pub fn connect(&self, database: &str) -> std::result::Result<Session, SqlError> {
        self.connect_with(database, &ConnectOptions::default())
    }

    /// Connects with other limits or settings.
    pub fn connect_with(
        &self,
        database: &str,
        options: &ConnectOptions,
    ) -> std::result::Result<Session, SqlError> {
        Session::open(&self.target(database, options), options)
    }

    /// Connects with an OAuth bearer token; with an empty one the server says where to get one.
    pub fn login_with_token(
        &self,
        database: &str,
        options: &ConnectOptions,
        token: &str,
    ) -> std::result::Result<Login, SqlError> {
        Session::open_with_token(&self.target(database, options), options, token)
    }

    fn target(&self, database: &str, options: &ConnectOptions) -> ConnectionTarget {
        ConnectionTarget {
            user: options.user.as_ref().unwrap_or(&self.superuser).clone(),
            ..ConnectionTarget::of(self, database)
        }
    }

    /// Stops the server and waits until it is gone, at most a minute. The log stays readable.
    pub fn stop(&mut self, mode: StopMode) -> Result<()> {
        let signal = match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        if self.ended_with().is_some() || self.signal_and_wait(signal, Duration::from_secs(60)) {
            return Ok(());
        }
        Err(Error::NotStopped {
            pgdata: self.pgdata.clone(),
            pid: self.pid(),
        })
    }

    fn signal_and_wait(&mut self, signal: Signal, limit: Duration) -> bool {
        process::signal(self.pid(), signal);
        let end = Instant::now() + limit;
        while self.ended_with().is_none() {
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(STEP);
        }
        true
    }

    /// Kills the postmaster and all its children with SIGKILL, as a crash of the machine would; the
    /// cluster then needs recovery.
    pub fn kill(&mut self) {
        if self.ended_with().is_some() {
            return;
        }
        process::kill_tree(self.pid());
        let _ = self.child.wait();
        self.ended_with();
        sweep::remove_shared_memory(&[self.pid()]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ended_with().is_none()
            && !self.signal_and_wait(Signal::QUIT, Duration::from_secs(5))
        {
            self.kill();
        }
    }
}

/// Whether `postmaster.pid` is of this postmaster and its eighth line says that connections are
/// taken.
fn is_ready(pgdata: &Path, pid: u32) -> bool {
    let text = std::fs::read_to_string(pgdata.join("postmaster.pid")).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    let own = lines.next().is_some_and(|line| line == pid.to_string());
    own && matches!(lines.nth(6), Some("ready" | "standby"))
}
