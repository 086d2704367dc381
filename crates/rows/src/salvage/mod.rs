//! All rows of a cluster, written to a folder, with an account of what could not be had.

mod account;
mod crew;
mod error;
mod folder;
mod lines;
mod pieces;
mod plan;
mod worker;

use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use account::{Account, LossPlace, Outcome, PLACES_MAX, RowCounts, TableAccount};
pub use error::SalvageError;
pub use folder::Durability;

use pgclinic_cluster::Cluster;
use pgclinic_diagnose::document::Tool;
use pgclinic_diagnose::{Progress, Selection, target_of};
use pgclinic_format::Oid;

use crate::charset::Charset;
use crate::file_names::FileNames;
use crate::forms::Form;
use crate::shape::ColumnChoice;
use crate::values::Partial;
use crew::Crew;
use folder::Folder;
use plan::{Plan, not_salvaged};

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

/// What to do.
#[derive(Clone)]
pub struct SalvageOptions {
    /// A new or empty folder.
    pub destination: PathBuf,
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
    /// Encoding of the files.
    pub encoding: Encoding,
    /// Whether files are forced to the disk.
    pub durability: Durability,
    /// Threads.
    pub threads: NonZeroUsize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Which databases and tables.
    pub selection: Selection,
    /// The target as the person named it.
    pub spec: String,
}

/// Writes the rows of a cluster. `elapsed_s` is left at 0: the clock is the caller's.
pub fn salvage(
    cluster: &Cluster,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<Account, SalvageError> {
    let folder = Folder::prepare(&options.destination, options.durability)?;
    let mut account = open_account(cluster, options);
    for (database, name) in databases(cluster, &options.selection) {
        let choice = ColumnChoice {
            generated: options.generated,
            dropped: options.dropped,
            system: options.rows == Rows::All,
        };
        let plan = Plan::of(cluster, database, &name, &options.selection, choice);
        account.not_salvaged.extend(plan.not_salvaged);
        let charset = match options.encoding {
            Encoding::Raw => Charset::Raw,
            Encoding::Utf8 => Charset::to_utf8(encoding_of(cluster, database)),
        };
        let crew = Crew::new(cluster, options, progress, &folder, plan.tables, charset);
        account.tables.extend(crew.run()?);
        if progress.is_interrupted() {
            account.interrupted = true;
            break;
        }
    }
    if account.tables.is_empty() && account.not_salvaged.is_empty() && !account.interrupted {
        return Err(SalvageError::NothingSelected);
    }
    account.close();
    Ok(account)
}

/// Databases with the names of their folders.
fn databases(cluster: &Cluster, selection: &Selection) -> Vec<(Oid, String)> {
    let all: Vec<(Oid, String)> = cluster
        .databases
        .values()
        .filter(|database| !database.invalid)
        .map(|database| {
            let number = || database.oid.to_string();
            (database.oid, database.name.clone().unwrap_or_else(number))
        })
        .collect();
    let parts: Vec<[&str; 1]> = all.iter().map(|(_, name)| [name.as_str()]).collect();
    let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
    all.iter()
        .filter(|(oid, _)| selection.takes_database(cluster, *oid))
        .map(|(oid, name)| (*oid, names.name(&[name], *oid)))
        .collect()
}

fn encoding_of(cluster: &Cluster, database: Oid) -> Option<i32> {
    cluster.databases.get(&database)?.encoding
}

fn open_account(cluster: &Cluster, options: &SalvageOptions) -> Account {
    let rows = match options.rows {
        Rows::Live => "live",
        Rows::All => "all",
    };
    let mut account = Account {
        schema: "pgclinic.salvage/1".into(),
        tool: Tool::this(),
        target: target_of(cluster, &options.spec),
        form: options.form.name().into(),
        rows: rows.into(),
        outcome: Outcome::Whole,
        interrupted: false,
        totals: RowCounts::default(),
        tables: Vec::new(),
        not_salvaged: Vec::new(),
        elapsed_s: 0.0,
    };
    let troubles = cluster.troubles.iter();
    account
        .not_salvaged
        .extend(troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why)));
    if cluster.needs_recovery() {
        let why = "the cluster was not shut down in good order: what its write-ahead log holds was not applied";
        account
            .not_salvaged
            .push(not_salvaged("changes since the last checkpoint", why));
    }
    account
}
