//! Why a cluster cannot be opened, and what could not be read of one that can.

use std::fmt;

use pgclinic_source::SourceError;

/// Why nothing can be done with this target.
#[derive(Debug)]
pub enum OpenError {
    /// The folder has neither `PG_VERSION` nor `global/pg_control`.
    NoCluster {
        /// What was missing.
        missing: &'static str,
    },
    /// A version outside 13-18.
    Version {
        /// What `PG_VERSION` or the control file says.
        found: String,
    },
    /// Files of a cluster, of which a part is not there, and nothing of the rest tells the major.
    UnknownMajor,
    /// Big-endian.
    ByteOrder,
    /// Built with options that decide where names end.
    NameLength {
        /// `NAMEDATALEN`.
        bytes: u32,
    },
    /// The control file and `PG_VERSION` disagree, and neither can be trusted.
    Contradiction {
        /// In words.
        why: String,
    },
    /// An incremental backup by itself.
    Incremental,
    /// Backups that are no chain.
    Chain {
        /// In words.
        why: String,
    },
    /// The source cannot be read.
    Source(SourceError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoCluster { missing } => {
                write!(f, "this is no data directory: {missing} is missing. Name the directory that holds PG_VERSION and global/pg_control")
            }
            OpenError::Version { found } => {
                write!(f, "this cluster is of version {found}; PostgreSQL 13 to 18 can be read")
            }
            OpenError::UnknownMajor => {
                f.write_str("nothing that is there tells the version of PostgreSQL: neither PG_VERSION nor the control file, a database or WAL")
            }
            OpenError::ByteOrder => {
                f.write_str("this cluster was written by a big-endian machine; only little-endian clusters can be read")
            }
            OpenError::NameLength { bytes } => {
                write!(f, "this cluster was built with names of {bytes} bytes (NAMEDATALEN); only the usual 64 can be read")
            }
            OpenError::Incremental => {
                f.write_str("this is an incremental backup, whose files hold only the blocks that changed. Name the full backup that it builds on, and this one and those between them with --incremental, in order")
            }
            OpenError::Contradiction { why } | OpenError::Chain { why } => f.write_str(why),
            OpenError::Source(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<SourceError> for OpenError {
    fn from(error: SourceError) -> Self {
        OpenError::Source(error)
    }
}

/// Something that could not be read or understood; the work went on without it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReadGap {
    /// What is missing, for the list of what was not checked.
    pub what: String,
    /// Why.
    pub why: String,
}

impl From<&SourceError> for ReadGap {
    fn from(error: &SourceError) -> Self {
        let what = match error.path.as_str() {
            "" => "the root directory",
            path => path,
        };
        ReadGap::new(what, error)
    }
}

impl ReadGap {
    pub(crate) fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        ReadGap {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
