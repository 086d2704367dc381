//! An installed PostgreSQL, for the tasks that need a real cluster. Its programs run as user
//! `postgres` when we are root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, at};
use crate::task::Outcome;

mod kill;

const USER: &str = "postgres";

/// What is shown of the log of a server that did not start.
const LOG_LINES: usize = 20;

/// The programs of one installation.
pub(crate) struct Tools {
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

impl Tools {
    /// The newest installation where Debian puts them, if any.
    pub(crate) fn find() -> Option<Self> {
        (13..=18).rev().find_map(Self::of_major)
    }

    /// The installation of one major version.
    pub(crate) fn of_major(major: u32) -> Option<Self> {
        Self::at(PathBuf::from(format!("/usr/lib/postgresql/{major}/bin")))
    }

    /// The installation whose programs lie in `folder`.
    pub(crate) fn at(folder: PathBuf) -> Option<Self> {
        folder.join("initdb").exists().then_some(Self {
            folder,
            environment: Vec::new(),
        })
    }

    /// The same with a variable in the environment of its programs.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Where the programs lie.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether this program is among them.
    pub(crate) fn has(&self, program: &str) -> bool {
        self.folder.join(program).exists()
    }

    /// One of the programs, as a user who may run it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = as_server_user(&self.folder.join(program));
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// Makes a cluster with data checksums, never started.
    pub(crate) fn new_cluster(&self, folder: &Path) -> Outcome {
        self.new_cluster_with(folder, &["-k", "-E", "UTF8", "--locale=C"])
    }

    /// The same with these arguments for `initdb`.
    pub(crate) fn new_cluster_with(&self, folder: &Path, arguments: &[&str]) -> Outcome {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        give_to_server_user(folder)?;
        let mut initdb = self.command("initdb");
        initdb
            .args(["-N", "-A", "trust", "-U", USER, "-D"])
            .arg(folder)
            .args(arguments);
        shell::capture(&mut initdb).map(drop)
    }

    /// Starts a server that listens on a socket in the cluster's own folder only.
    pub(crate) fn start(&self, cluster: &Path, settings: &[&str]) -> Result<Server<'_>, String> {
        let mut options = format!("-k {} -c listen_addresses=''", cluster.display());
        for setting in settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        let log = cluster.join("server.log");
        let mut start = self.command("pg_ctl");
        start
            .args(["-w", "-t", "300", "-D"])
            .arg(cluster)
            .arg("-l")
            .arg(&log)
            .args(["-o", &options, "start"]);
        // The server would keep a captured stdout open for as long as it lives.
        shell::run(start.stdout(std::process::Stdio::null()))
            .map_err(|error| format!("{error}; the server's log ends:\n{}", end_of(&log)))?;
        Ok(Server {
            tools: self,
            cluster: cluster.to_path_buf(),
            running: true,
        })
    }
}

/// Removes what keeps a server from starting on a copy, or after a process that nobody reaped.
pub(crate) fn remove_locks(cluster: &Path) -> Outcome {
    for lock in [".s.PGSQL.5432", ".s.PGSQL.5432.lock", "postmaster.pid"] {
        let lock = cluster.join(lock);
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at(&lock)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The last lines of a log, for a server that did not start.
fn end_of(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// `program` as the user that servers run as.
pub(crate) fn as_server_user(program: &Path) -> Command {
    let mut command = match user_id() {
        Some(0) => {
            let mut command = Command::new("runuser");
            command.args(["-u", USER, "--"]).arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.current_dir("/");
    command
}

/// A running server; stopped when dropped.
pub(crate) struct Server<'a> {
    tools: &'a Tools,
    cluster: PathBuf,
    running: bool,
}

impl Server<'_> {
    /// A client program that talks to this server.
    pub(crate) fn client(&self, program: &str) -> Command {
        // Fetched servers come without clients, and those of another major serve them.
        let other = Tools::find().filter(|_| !self.tools.has(program));
        let mut command = other.as_ref().unwrap_or(self.tools).command(program);
        command.arg("-h").arg(&self.cluster);
        command
    }

    /// Where its socket is.
    pub(crate) fn folder(&self) -> &Path {
        &self.cluster
    }

    /// Stops cleanly, with a checkpoint.
    pub(crate) fn stop(mut self) -> Outcome {
        self.halt()
    }

    /// Kills the postmaster and its children at once, as the end of the machine would: the cluster
    /// needs recovery.
    pub(crate) fn kill(&mut self) -> Outcome {
        self.running = false;
        kill::server_of(&self.cluster)
    }

    fn halt(&mut self) -> Outcome {
        self.running = false;
        let mut stop = self.tools.command("pg_ctl");
        stop.args(["-w", "-t", "300", "-m", "fast", "-D"])
            .arg(&self.cluster)
            .arg("stop");
        shell::capture(&mut stop).map(drop)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if self.running {
            // On the way out of a failure, and that is the one to report.
            let _ = self.halt();
        }
    }
}

/// The user who runs this, `None` where that cannot be seen.
pub(crate) fn user_id() -> Option<u32> {
    std::fs::metadata("/proc/self")
        .ok()
        .map(|metadata| metadata.uid())
}

/// Makes `folder` the server user's own when we are root.
pub(crate) fn give_to_server_user(folder: &Path) -> Outcome {
    if user_id() != Some(0) {
        return Ok(());
    }
    shell::capture(Command::new("chown").arg(format!("{USER}:")).arg(folder)).map(drop)
}

/// A folder that is removed when dropped.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind lies in a temporary folder; the task's own outcome matters more.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// An empty folder that the server's user can reach.
pub(crate) fn scratch(name: &str) -> Result<Scratch, String> {
    let path = PathBuf::from(format!("/var/tmp/pgclinic-{name}-{}", std::process::id()));
    std::fs::create_dir(&path).map_err(at(&path))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(at(&path))?;
    Ok(Scratch { path })
}
