//! PostgreSQL's test drivers, run for what they leave behind: a test that fails on another server
//! is no matter.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian::Debian;
use super::workshop::folder_of_server;
use crate::postgres::{Server, Tools, as_server_user};
use crate::shell;
use crate::task::Outcome;

/// Which driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Regress,
    Isolation,
}

/// Servers that run a suite: everything on, nothing waits for a disk.
pub(super) const SETTINGS: &[&str] = &[
    "fsync=off",
    "wal_level=logical",
    "max_prepared_transactions=20",
    "track_commit_timestamp=on",
    "max_wal_size=256MB",
    "min_wal_size=32MB",
    "log_min_messages=fatal",
    "log_statement=none",
];

/// One run of a driver.
pub(super) struct Suite<'a> {
    pub(super) driver: Driver,
    /// The installation that brings driver and `psql`.
    pub(super) tools: &'a Tools,
    pub(super) debian: &'a Debian,
    /// The suite's folder in the source tree.
    pub(super) input: PathBuf,
    /// Where results go.
    pub(super) output: PathBuf,
    /// Schedule, names of tests, options.
    pub(super) arguments: Vec<String>,
}

impl Suite<'_> {
    /// The command, ready to be run.
    pub(super) fn command(&self, server: &Server<'_>) -> Result<Command, String> {
        folder_of_server(&self.output)?;
        let drivers = self.tools.folder().join("../lib/pgxs/src/test");
        let program = match self.driver {
            Driver::Regress => drivers.join("regress/pg_regress"),
            Driver::Isolation => drivers.join("isolation/pg_isolation_regress"),
        };
        if !program.exists() {
            return Err(format!("{} is missing", program.display()));
        }
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let mut command = as_server_user(&program);
        command
            .arg(option("inputdir", &self.input))
            .arg(option("outputdir", &self.output))
            .arg(option("dlpath", &self.debian.libraries))
            .arg(option("bindir", self.tools.folder()))
            .arg(option("host", server.folder()))
            .args(["--user=postgres", "--max-concurrent-tests=20"])
            .args(&self.arguments);
        Ok(command)
    }

    /// Runs to the end; failed tests are no error, a driver that cannot work is.
    pub(super) fn run(&self, server: &Server<'_>) -> Outcome {
        let output = shell::output(&mut self.command(server)?)?;
        match output.status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(shell::both(&output)),
        }
    }
}

/// The main suite of `debian`, on any server.
pub(super) fn regression<'a>(tools: &'a Tools, debian: &'a Debian, output: PathBuf) -> Suite<'a> {
    let input = debian.source.join("src/test/regress");
    let schedule = format!("--schedule={}", input.join("parallel_schedule").display());
    Suite {
        driver: Driver::Regress,
        tools,
        debian,
        input,
        output,
        arguments: vec![schedule],
    }
}
