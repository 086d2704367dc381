//! Why a salvage cannot go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Not being able to work: damage of the cluster is none of these.
#[derive(Debug)]
pub enum SalvageError {
    /// The destination does not take what is written.
    Destination {
        /// The file or folder.
        path: PathBuf,
        /// `make`, `write`, `finish`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The destination lies in a data directory.
    InsideCluster {
        /// The destination.
        destination: PathBuf,
        /// The data directory.
        cluster: PathBuf,
    },
    /// The destination holds something.
    NotEmpty(PathBuf),
    /// Nothing fits the selection.
    NothingSelected,
}

impl SalvageError {
    pub(crate) fn destination(path: &Path, what: &'static str, source: io::Error) -> Self {
        SalvageError::Destination {
            path: path.to_owned(),
            what,
            source,
        }
    }
}

impl fmt::Display for SalvageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SalvageError::Destination { path, what, source } => {
                write!(f, "cannot {what} {}: {source}. Files that were finished before are whole", path.display())
            }
            SalvageError::InsideCluster { destination, cluster } => {
                write!(f, "{} lies inside the data directory {}: name a folder outside of it", destination.display(), cluster.display())
            }
            SalvageError::NotEmpty(path) => {
                write!(f, "{} is not empty: name a new folder", path.display())
            }
            SalvageError::NothingSelected => {
                f.write_str("the selection fits no table that is described in the catalogs. Relations are written schema.name, * and ? are wild")
            }
        }
    }
}

impl std::error::Error for SalvageError {}
