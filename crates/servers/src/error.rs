//! Why a server could not be found, made, started or stopped. Each text says what, where, why, and
//! what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::message::SqlError;

/// Short for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Inability to work with a real server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A folder without a complete PostgreSQL.
    NotAnInstallation {
        /// The folder that was looked at.
        bindir: PathBuf,
        /// What is missing or went wrong.
        why: String,
    },
    /// A major outside 13-18.
    Unsupported {
        /// The version as it names itself or as it was asked for.
        version: String,
    },
    /// The download failed.
    Fetch {
        /// What was wanted, for example `PostgreSQL 18`.
        what: String,
        /// What the network or the archive said.
        why: String,
    },
    /// No such user, or none that servers may run as.
    NoUser {
        /// The name asked for.
        name: String,
        /// Why it cannot be used.
        why: String,
    },
    /// A file or folder could not be made, read, written or removed.
    Io {
        /// What was tried, for example `create`.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A disk with a delay could not be made.
    SlowDisk {
        /// What is missing or went wrong.
        why: String,
    },
    /// A program could not be started.
    Spawn {
        /// The program.
        program: PathBuf,
        /// The user it was to run as.
        user: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A program ended with an error.
    Failed {
        /// The program.
        program: PathBuf,
        /// Its exit status in words.
        status: String,
        /// The end of what it wrote.
        output: String,
    },
    /// The server ended, or was not ready in time.
    NotStarted {
        /// The data directory.
        pgdata: PathBuf,
        /// What happened.
        why: String,
        /// The end of the server's log.
        log: String,
    },
    /// A server that was to recover and to shut down did not.
    NotRecovered {
        /// What happened.
        why: String,
        /// The server's log.
        log: String,
    },
    /// The server did not stop in time.
    NotStopped {
        /// The data directory.
        pgdata: PathBuf,
        /// The postmaster.
        pid: u32,
    },
    /// The program is ending; no new server is started.
    Ending,
    /// An SQL statement failed.
    Sql {
        /// What the statement was for.
        what: String,
        /// What the server said.
        source: SqlError,
    },
}

impl Error {
    /// Turns an I/O error into ours: `Error::io("create", path)` for `map_err`.
    pub(crate) fn io(
        what: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { what, path, source }
    }

    /// Turns an SQL error into ours.
    pub(crate) fn sql(what: impl Into<String>) -> impl FnOnce(SqlError) -> Self {
        let what = what.into();
        move |source| Self::Sql { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnInstallation { bindir, why } => write!(
                out,
                "no usable PostgreSQL in {}: {why}. Give the directory that holds initdb, pg_ctl and postgres.",
                bindir.display()
            ),
            Self::Unsupported { version } => write!(
                out,
                "PostgreSQL {version} is not supported: its files have another layout. Use a version from 13 to 18."
            ),
            Self::Fetch { what, why } => write!(
                out,
                "could not fetch {what}: {why}. Install PostgreSQL, or name an installed one with --pg-bindir."
            ),
            Self::NoUser { name, why } => write!(
                out,
                "servers cannot run as user \"{name}\": {why}. Name an unprivileged user with --run-as."
            ),
            Self::Io { what, path, source } => {
                write!(out, "could not {what} {}: {source}", path.display())
            }
            Self::SlowDisk { why } => {
                write!(out, "no disk with a delay can be made here: {why}")
            }
            Self::Spawn {
                program,
                user,
                source,
            } => write!(
                out,
                "could not run {} as user {user}: {source}. The user must be able to reach and execute it.",
                program.display()
            ),
            Self::Failed {
                program,
                status,
                output,
            } => {
                write!(
                    out,
                    "{} failed ({status}): {}",
                    program.display(),
                    output.trim_end()
                )
            }
            Self::NotStarted { pgdata, why, log } => {
                write!(
                    out,
                    "the server on {} did not start: {why}",
                    pgdata.display()
                )?;
                if log.is_empty() {
                    Ok(())
                } else {
                    write!(out, "; its log ends with:\n{}", log.trim_end())
                }
            }
            Self::NotRecovered { why, log } => {
                write!(out, "the server did not come to the end of recovery: {why}")?;
                worst_lines(log).try_for_each(|line| write!(out, "; {line}"))
            }
            Self::NotStopped { pgdata, pid } => write!(
                out,
                "the server on {} (process {pid}) did not stop in time; end it before touching its files",
                pgdata.display()
            ),
            Self::Ending => out.write_str("the program is ending, so no new server is started"),
            Self::Sql { what, source } => write!(out, "{what}: {source}"),
        }
    }
}

/// What a server ended over, without the time in front; else its last line.
fn worst_lines(log: &str) -> impl Iterator<Item = &str> {
    let fatal = log.lines().filter_map(|line| {
        let severities = ["FATAL:", "PANIC:"].iter();
        let at = severities
            .filter_map(|severity| line.find(severity))
            .min()?;
        line.get(at..)
    });
    let has_fatal = fatal.clone().next().is_some();
    let last = log.lines().last().filter(|_| !has_fatal);
    fatal.take(3).chain(last)
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Spawn { source, .. } => Some(source),
            Self::Sql { source, .. } => Some(source),
            _ => None,
        }
    }
}
