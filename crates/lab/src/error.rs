//! Why a run, or the laboratory, could not go on.

use std::fmt;
use std::path::{Path, PathBuf};

use pgclinic_servers::SqlError;

/// Short for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// What stops a run. [`Error::Skip`] and [`Error::Empty`] are outcomes of a run, not faults.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Somebody asked the program to stop; the run in flight is lost.
    Interrupted,
    /// This cannot be run here, with what is missing.
    Skip(String),
    /// It ran and there is no result, with the reason.
    Empty(String),
    /// A server could not be found, made, started or stopped.
    Server(pgclinic_servers::Error),
    /// A statement failed.
    Sql {
        /// What it was for.
        what: String,
        /// What the server said.
        source: SqlError,
    },
    /// A file or folder could not be made, read or written.
    Io {
        /// What was tried: `write`.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The plan, the folder or the arguments do not fit; a whole sentence.
    Refused(String),
}

impl Error {
    /// Turns an I/O error into ours: `Error::io("write", path)` for `map_err`.
    pub fn io(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { what, path, source }
    }

    /// Turns an SQL error into ours: `Error::sql("filling the table")` for `map_err`.
    pub fn sql(what: impl Into<String>) -> impl FnOnce(SqlError) -> Self {
        let what = what.into();
        move |source| Self::Sql { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => out.write_str("interrupted"),
            Self::Skip(why) | Self::Empty(why) | Self::Refused(why) => out.write_str(why),
            Self::Server(error) => error.fmt(out),
            Self::Sql { what, source } => write!(out, "{what}: {source}"),
            Self::Io { what, path, source } => {
                write!(out, "could not {what} {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Server(error) => Some(error),
            Self::Sql { source, .. } => Some(source),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<pgclinic_servers::Error> for Error {
    fn from(error: pgclinic_servers::Error) -> Self {
        match error {
            pgclinic_servers::Error::Ending => Self::Interrupted,
            error => Self::Server(error),
        }
    }
}
