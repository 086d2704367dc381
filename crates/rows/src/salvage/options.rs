//! What a person asks of a salvage.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use pgclinic_diagnose::Selection;
use pgclinic_servers::Target;

use super::folder::Durability;
use super::stream::Stream;
use crate::forms::Form;
use crate::schema::given::GivenTable;
use crate::text_settings::TextStyle;
use crate::values::Partial;

/// Which row versions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// Those that a server would show, and those whose fate is lost.
    Live,
    /// All that can be read.
    All,
}

/// The encoding of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// UTF-8, whatever the database has.
    Utf8,
    /// The database's own bytes.
    Raw,
}

/// Where the rows go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A new or empty folder.
    Folder(PathBuf),
    /// A database in which no schema of the source holds anything.
    Server(Box<Target>),
    /// Whoever takes it: the rows of one table, and nothing beside them.
    Stream(Stream),
}

/// What to do.
#[derive(Clone)]
pub struct SalvageOptions {
    /// Where to.
    pub destination: Destination,
    /// The form of the files.
    pub form: &'static dyn Form,
    /// Which row versions.
    pub rows: Rows,
    /// Generated columns too.
    pub generated: bool,
    /// Dropped columns too.
    pub dropped: bool,
    /// Values of which a part is left.
    pub partial: Partial,
    /// Holding the rows that were written to the keys of their tables.
    pub verify: bool,
    /// Encoding of the files.
    pub encoding: Encoding,
    /// How values are printed.
    pub text: TextStyle,
    /// Whether files are forced to the disk.
    pub durability: Durability,
    /// Going on with a folder in which an earlier run was cut off.
    pub resume: bool,
    /// Threads.
    pub threads: NonZeroUsize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// A file for the schema, as SQL that `psql` takes.
    pub ddl: Option<PathBuf>,
    /// Tables whose columns the catalogs may not give.
    pub given: Vec<GivenTable>,
    /// Catalogs are not read: every file of rows is a table, with columns that are given or guessed.
    pub without_catalogs: bool,
    /// Which databases and tables.
    pub selection: Selection,
    /// The target as the person named it.
    pub spec: String,
    /// Where what does not fit in memory is sorted.
    pub spill_folder: PathBuf,
}
