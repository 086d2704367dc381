//! Why a salvage cannot go on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_servers::SqlError;

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
    /// What was asked for does not go together.
    Unsuitable(String),
    /// The server that is the destination, or the source, does not go on.
    Server {
        /// `connect`, `load rows`.
        what: String,
        /// Why.
        source: Box<SqlError>,
    },
    /// Schemas of the destination that are not empty.
    SchemaHoldsSomething(Vec<String>),
    /// A relation file that is no table's.
    NoHeap {
        /// The file.
        path: String,
        /// What its pages are of.
        method: AccessMethod,
    },
    /// The columns that were given are not those of the rows.
    ColumnsDoNotFit {
        /// The table that they describe.
        table: String,
        /// Rows that were looked at.
        rows: u64,
        /// How many of them contradict the columns.
        misfits: u64,
        /// The first of these.
        place: Tid,
        /// What is wrong with it.
        why: String,
    },
}

impl SalvageError {
    pub(crate) fn server(what: &str, source: SqlError) -> Self {
        SalvageError::Server {
            what: what.to_owned(),
            source: Box::new(source),
        }
    }

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
                write!(f, "{} lies inside the data directory {}: name a directory outside of it", destination.display(), cluster.display())
            }
            SalvageError::NotEmpty(path) => {
                write!(f, "{} is not empty: name a new directory, or give --resume to go on with a salvage that was truncated", path.display())
            }
            SalvageError::Unsuitable(why) => f.write_str(why),
            SalvageError::Server { what, source } => {
                write!(f, "cannot {what}: {source}. The same command goes on where this one ended")
            }
            SalvageError::SchemaHoldsSomething(schemas) => {
                write!(f, "the destination already holds something in {}: name a database in which these schemas are empty", schemas.join(", "))
            }
            SalvageError::NoHeap { path, method } => {
                write!(f, "{path} holds pages of {}, and no rows of a table", method_words(*method))
            }
            SalvageError::ColumnsDoNotFit { table, rows, misfits, place, why } => {
                write!(f, "the columns given for {table} are not those of the file: {misfits} of {rows} rows that were examined contradict them. Row ({},{}): {why}", place.block, place.offset)
            }
            SalvageError::NothingSelected => {
                f.write_str("the selection fits no table that is described in the catalogs. Relations are written schema.name, * and ? are wild")
            }
        }
    }
}

impl std::error::Error for SalvageError {}

fn method_words(method: AccessMethod) -> &'static str {
    match method {
        AccessMethod::Heap => "a table",
        AccessMethod::Btree => "a btree index",
        AccessMethod::Hash => "a hash index",
        AccessMethod::Gist => "a gist index",
        AccessMethod::Gin => "a gin index",
        AccessMethod::Spgist => "an spgist index",
        AccessMethod::Brin => "a brin index",
        AccessMethod::Sequence => "a sequence",
    }
}
