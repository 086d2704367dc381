//! What a person asks of a salvage.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use pgclinic_model::Selection;
use pgclinic_servers::ConnectionTarget;
use pgclinic_spill::MemoryPlan;
use serde::Serialize;
use serde_json::json;

use super::folder::Durability;
use super::stream::Stream;
use crate::formats::Form;
use crate::schema::given::GivenTable;
use crate::shape::ColumnChoice;
use crate::text_settings::TextStyle;
use crate::values::Partial;

/// Which row versions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rows {
    /// Those that a server would show, and those whose fate is lost.
    Live,
    /// All that can be read.
    All,
}

/// The encoding of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    Server(Box<ConnectionTarget>),
    /// Whoever takes it: the rows of one table, and nothing beside them.
    Stream(Stream),
}

/// How long a statement waits for a lock of others, where nobody says it: longer than most hold one
/// that a reader needs.
pub const LOCK_WAIT: Duration = Duration::from_secs(15);

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
    /// Who holds how much memory.
    pub memory: MemoryPlan,
    /// A file for the schema, as SQL that `psql` takes.
    pub ddl: Option<PathBuf>,
    /// Tables whose columns the catalogs may not give.
    pub given: Vec<GivenTable>,
    /// Catalogs are not read: every file of rows is a table, with columns that are given or
    /// guessed.
    pub without_catalogs: bool,
    /// Which databases and tables.
    pub selection: Selection,
    /// The target as the person named it.
    pub spec: String,
    /// Where what does not fit in memory is sorted.
    pub spill_folder: PathBuf,
    /// Of a running server: how long a statement waits for a lock of others before it is asked
    /// again.
    pub lock_wait: Duration,
}

impl SalvageOptions {
    /// Columns that are written beside the usual ones.
    pub(crate) fn column_choice(&self) -> ColumnChoice {
        ColumnChoice {
            generated: self.generated,
            dropped: self.dropped,
            system: self.rows == Rows::All,
        }
    }

    /// What must be the same for a second run to go on after a first one from the same `source`. It
    /// is written beside the rows, so every option that changes a byte of them stands in it by a
    /// name that does not follow the code.
    pub(crate) fn resume_key(&self, source: &str) -> String {
        json!({
            "version": 3,
            "source": source,
            "format": self.form.name(),
            "without_catalogs": self.without_catalogs,
            "rows": self.rows,
            "generated": self.generated,
            "dropped": self.dropped,
            "partial": self.partial,
            "encoding": self.encoding,
            "text": self.text.settings,
        })
        .to_string()
    }
}
