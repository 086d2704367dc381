//! Why nothing was written, each reason in one sentence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::safety::LOCK_FILE;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the work could not be done.
#[derive(Debug)]
pub enum Error {
    /// A server has the cluster open.
    Running {
        /// The data directory.
        pgdata: PathBuf,
        /// Its postmaster.
        pid: i64,
    },
    /// `postmaster.pid` is there, its process is not, at least not on this machine.
    RunningPerhaps {
        /// The data directory.
        pgdata: PathBuf,
        /// What the file says.
        says: String,
    },
    /// Neither a marked copy nor consent.
    NotMarked {
        /// The data directory.
        pgdata: PathBuf,
        /// Its number, to be typed out.
        system_identifier: Option<u64>,
    },
    /// The marker was made for another cluster.
    MarkerOfAnother {
        /// The data directory.
        pgdata: PathBuf,
    },
    /// The number that was typed is not the cluster's.
    WrongIdentifier {
        /// What was typed.
        typed: u64,
        /// The cluster's.
        found: Option<u64>,
    },
    /// The journal belongs to another cluster.
    OtherCluster {
        /// Number in the journal.
        journal: u64,
        /// Number of the cluster, if it can be read.
        found: Option<u64>,
    },
    /// The bytes that the plan was made for are not there any more.
    Changed {
        /// The file.
        path: String,
        /// What is different.
        why: String,
    },
    /// The cluster was not stopped in good order, or is in a state in between.
    NotShutDown {
        /// The data directory.
        pgdata: PathBuf,
        /// Why.
        why: String,
    },
    /// The control file is not the one that a journal or a plan knows.
    ControlMoved {
        /// What to do.
        advice: String,
    },
    /// Neither the bytes from before nor those from after are there.
    Foreign {
        /// The file.
        path: String,
        /// What is different.
        why: String,
    },
    /// A path that is never written to.
    Path {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
    /// A patch that contradicts itself.
    Patch {
        /// How.
        why: String,
    },
    /// A journal that cannot be used.
    Journal {
        /// The journal.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The file system is mounted read-only.
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
    },
    /// The operating system refused.
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// A cure that cannot be done at this place.
    Cure {
        /// Where.
        place: String,
        /// Why.
        why: String,
    },
    /// Somebody else is writing to the cluster, or taking something back.
    Locked {
        /// The data directory.
        pgdata: PathBuf,
    },
    /// The cluster is no longer the one of the plan.
    OtherBasis {
        /// What is different.
        why: String,
    },
    /// No place fits the injury.
    NoTarget {
        /// The injury.
        injury: String,
        /// Where was looked.
        within: String,
    },
    /// A name that nothing has.
    Unknown {
        /// Database, relation or injury.
        what: &'static str,
        /// The name.
        name: String,
    },
}

impl Error {
    /// For `map_err`: the file and what was tried with it.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
            _ => Error::Io { what, path, source },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Running { pgdata, pid } => {
                let pgdata = pgdata.display();
                write!(
                    f,
                    "a server is running on {pgdata} (process {pid}): stop it first, nothing was written"
                )
            }
            Error::RunningPerhaps { pgdata, says } => {
                let file = pgdata.join(LOCK_FILE);
                write!(
                    f,
                    "{} {says}: if no server runs on this cluster in a container or on another machine either, remove that file and try again; nothing was written",
                    file.display()
                )
            }
            Error::NotMarked {
                pgdata,
                system_identifier,
            } => {
                let number =
                    system_identifier.map_or("NUMBER".to_owned(), |number| number.to_string());
                write!(
                    f,
                    "{} is not a marked copy: work on a copy (--copy-to DIR), or say --this-is-not-production {number}; nothing was written",
                    pgdata.display()
                )
            }
            Error::MarkerOfAnother { pgdata } => {
                write!(
                    f,
                    "{} carries the marker of another cluster: nothing was written",
                    pgdata.display()
                )
            }
            Error::WrongIdentifier {
                typed,
                found: Some(found),
            } => {
                write!(
                    f,
                    "the system identifier {typed} was typed, but this cluster's is {found}: nothing was written"
                )
            }
            Error::WrongIdentifier { typed, found: None } => {
                write!(
                    f,
                    "the system identifier {typed} was typed, but the control file cannot be read to compare it: nothing was written"
                )
            }
            Error::OtherCluster {
                journal,
                found: Some(found),
            } => {
                write!(
                    f,
                    "the journal belongs to the cluster {journal}, this one is {found}: nothing was written"
                )
            }
            Error::OtherCluster {
                journal,
                found: None,
            } => {
                write!(
                    f,
                    "the journal belongs to the cluster {journal}, and the control file here does not tell whether this is the one: nothing was written"
                )
            }
            Error::Changed { path, why } => {
                write!(
                    f,
                    "{path} has changed since the plan was made, {why}: nothing was written, make the plan again"
                )
            }
            Error::NotShutDown { pgdata, why } => {
                write!(f, "{}: {why}; nothing was written", pgdata.display())
            }
            Error::ControlMoved { advice } => {
                write!(
                    f,
                    "global/pg_control is another one than before: a server was started on the cluster since, or it is another cluster. Nothing was written; {advice}"
                )
            }
            Error::Foreign { path, why } => {
                write!(
                    f,
                    "{path} holds neither the bytes from before nor those from after, {why}: something else wrote to it, nothing was written"
                )
            }
            Error::Path { path, why } => write!(f, "{path} is not written to: {why}"),
            Error::Patch { why } => write!(f, "the plan cannot be carried out: {why}"),
            Error::Journal { path, why } => {
                write!(f, "the journal {} cannot be used: {why}", path.display())
            }
            Error::ReadOnly { path } => {
                write!(
                    f,
                    "{} is on a file system that is mounted read-only: nothing was written",
                    path.display()
                )
            }
            Error::Io { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            Error::Cure { place, why } => write!(f, "{place}: {why}"),
            Error::Locked { pgdata } => {
                write!(
                    f,
                    "another pgclinic is writing to {} at this moment: nothing was written",
                    pgdata.display()
                )
            }
            Error::OtherBasis { why } => {
                write!(f, "{why}: nothing was written, make the plan again")
            }
            Error::NoTarget { injury, within } => {
                write!(f, "{within} holds no place that {injury} could hurt")
            }
            Error::Unknown { what, name } => write!(f, "there is no {what} {name}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
