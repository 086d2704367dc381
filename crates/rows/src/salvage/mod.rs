//! All rows of a cluster, written to a folder, with an account of what could not be had.

mod account;
mod crew;
mod error;
mod folder;
mod large_objects;
mod lines;
mod pieces;
mod plan;
mod sequences;
mod worker;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use account::{
    Account, LargeObjectsAccount, LossPlace, Outcome, PLACES_MAX, ReplayAccount, RowCounts,
    SequenceAccount, TableAccount,
};
pub use error::SalvageError;
pub use folder::Durability;

use pgclinic_cluster::wal::Replayed;
use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_diagnose::document::{NotChecked, Tool};
use pgclinic_diagnose::{Progress, Selection, target_of};
use pgclinic_format::Oid;

use crate::charset::Charset;
use crate::file_names::FileNames;
use crate::forms::Form;
use crate::schema::SchemaFile;
use crate::schema::given::GivenTable;
use crate::shape::{ColumnChoice, MainForks};
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
    /// A file for the schema, as SQL that `psql` takes.
    pub ddl: Option<PathBuf>,
    /// Tables whose columns the catalogs may not give.
    pub given: Vec<GivenTable>,
    /// Which databases and tables.
    pub selection: Selection,
    /// The target as the person named it.
    pub spec: String,
    /// Where what does not fit in memory is sorted.
    pub spill_folder: PathBuf,
}

/// Writes the rows of a cluster. `elapsed_s` is left at 0: the clock is the caller's.
pub fn salvage(
    cluster: &Cluster,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<Account, SalvageError> {
    let folder = Folder::prepare(&options.destination, options.durability)?;
    // Half of the memory is left for reading.
    let replayed = match cluster.needs_recovery() {
        true => cluster.replayed(options.memory_bytes / 2),
        false => None,
    };
    let mut account = open_account(cluster, options);
    let mut not_replayed = BTreeMap::new();
    if let Some((_, replayed)) = &replayed {
        account.replay = Some(replay_account(replayed));
        not_replayed.clone_from(&replayed.not_applied);
    }
    if cluster.needs_recovery() {
        account.not_salvaged.extend(gaps(account.replay.as_ref()));
    }
    let cluster = replayed.as_ref().map_or(cluster, |(cluster, _)| cluster);
    let mut schema = SchemaFile::default();
    for (database, name) in databases(cluster, &options.selection) {
        if options.ddl.is_some() {
            schema.add(cluster, database);
        }
        let choice = ColumnChoice {
            generated: options.generated,
            dropped: options.dropped,
            system: options.rows == Rows::All,
        };
        let catalog = cluster.catalog(database);
        let files = MainForks::of_database(cluster, database);
        let mut plan = Plan::of(
            cluster,
            &catalog,
            &files,
            &name,
            &options.selection,
            choice,
            &options.given,
        );
        beside_tables(
            cluster,
            &catalog,
            &files,
            options,
            &folder,
            &name,
            &mut account,
        )?;
        plan.count_not_replayed(&not_replayed);
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
    if let Some(path) = &options.ddl {
        folder::write_text(path, &schema.text(), options.durability)?;
        account.not_salvaged.append(&mut schema.not_written);
    }
    if account.tables.is_empty() && account.not_salvaged.is_empty() && !account.interrupted {
        return Err(SalvageError::NothingSelected);
    }
    account.close();
    Ok(account)
}

/// Sequences and large objects.
fn beside_tables(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    options: &SalvageOptions,
    folder: &Folder,
    name: &str,
    account: &mut Account,
) -> Result<(), SalvageError> {
    let (sequences, lost) = sequences::read_all(cluster, catalog, files, &options.selection);
    let lost = lost.iter().map(|(what, why)| not_salvaged(what, why));
    account.not_salvaged.extend(lost);
    if !sequences.is_empty() {
        let mut file = folder.begin(&format!("{name}/sequences.sql"))?;
        file.write(sequences::script(&sequences).as_bytes())?;
        file.finish()?;
        account.sequences.extend(sequences);
    }
    // A person who names tables wants those.
    if options.selection.relations.is_empty() && options.selection.filenodes.is_empty() {
        let file = format!("{name}/large_objects.tar");
        let objects = large_objects::salvage(cluster, catalog, files, options, folder, &file)?;
        account.large_objects.extend(objects);
    }
    Ok(())
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
        replay: None,
        totals: RowCounts::default(),
        tables: Vec::new(),
        sequences: Vec::new(),
        large_objects: Vec::new(),
        not_salvaged: Vec::new(),
        elapsed_s: 0.0,
    };
    let troubles = cluster.troubles.iter();
    account
        .not_salvaged
        .extend(troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why)));
    account
}

fn replay_account(replayed: &Replayed) -> ReplayAccount {
    ReplayAccount {
        start: replayed.start.to_string(),
        end: replayed.end.record.to_string(),
        why: replayed.end.why.to_string(),
        records: replayed.records,
        applied: replayed.applied,
        not_applied: replayed.not_applied.values().sum(),
        faults: replayed.faults.clone(),
        is_complete: replayed.is_complete,
    }
}

/// What recovery would still bring.
fn gaps(replay: Option<&ReplayAccount>) -> Option<NotChecked> {
    let what = "changes since the last checkpoint";
    match replay {
        None => Some(not_salvaged(
            what,
            "the cluster was not shut down in good order, and its write-ahead log cannot be applied",
        )),
        Some(replay) if !replay.is_complete => {
            let why = format!("the write-ahead log ends at {}: {}", replay.end, replay.why);
            Some(not_salvaged(what, &why))
        }
        Some(_) => None,
    }
}
