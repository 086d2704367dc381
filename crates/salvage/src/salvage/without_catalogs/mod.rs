//! A database whose catalogs cannot be read: every file of rows is a table, its columns are guessed
//! from its rows or given by a person, and relations with long values are known by their shape.
//!
//! ```text
//! files ─► pages of rows? ─┬─ rows look like chunks ─► long values ─┐ by the number that pointers name, else by the values
//!                          └─ else ─► columns guessed, or given ────┴► a table
//! ```
//!
//! Truth of the shape of long values: `toast_save_datum` in
//! `src/backend/access/common/toast_internals.c`.

mod chunks;
mod guess_file;

use std::collections::BTreeSet;

use pgclinic_cluster::{Charset, Cluster, ForkFiles};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::Selection;
use pgclinic_model::document::SequenceAccount;

use super::fitting;
use super::plan::{Plan, Planned, account_of, not_salvaged};
use super::sampling::guessed_table;
use super::{SalvageOptions, encoding_of, sequences};
use crate::file_names::FileNames;
use crate::schema::given::GivenTable;
use crate::schema::guess::GuessedColumn;
use crate::shape::Table;

pub use guess_file::guess_cluster;

/// The files of a database by what their pages hold.
pub(super) struct Found {
    tables: Vec<ForkFiles>,
    /// Files that look like relations with long values.
    chunks: Vec<ForkFiles>,
    sequences: Vec<ForkFiles>,
    /// Files of which no page tells what it is; empty ones are none of them.
    unknown: Vec<ForkFiles>,
    /// All main forks, the system's too.
    all: Vec<ForkFiles>,
    troubles: Vec<pgclinic_cluster::ReadGap>,
}

/// A file of rows, what its columns are, and where its long values stand.
struct Described {
    files: ForkFiles,
    /// What a person gave, or what was guessed; nothing where no layout fits.
    given: Option<GivenTable>,
    /// Of a guess.
    guessed: Vec<GuessedColumn>,
    toast: Option<ForkFiles>,
}

/// The tables of a database, with their files in `folder`, and what else was found.
pub(super) fn plan(
    cluster: &Cluster,
    database: Oid,
    folder: &str,
    options: &SalvageOptions,
) -> (Plan, Vec<SequenceAccount>, Vec<ForkFiles>) {
    let found = Found::among(cluster, database, &options.selection, &|_| true);
    let mut plan = plan_of(cluster, database, folder, options, &found);
    let name = name_of(cluster, database);
    let is_guess = |planned: &&Planned| planned.table.is_guessed;
    let guessed = plan.tables.iter().filter(is_guess).count();
    let given = plan.tables.len() - guessed;
    let why = format!(
        "its catalogs are not read: {} tables are named by their files, the columns of {guessed} are guessed, those of {given} given. --guess prints the guesses, for --schema",
        plan.tables.len()
    );
    if !plan.tables.is_empty() || !plan.not_salvaged.is_empty() {
        let what = format!("names and columns of database {name}");
        plan.not_salvaged.push(not_salvaged(&what, &why));
    }
    let sequences = sequences::of_files(cluster, &name, &found.sequences);
    (plan, sequences, found.all)
}

/// The tables among the files that were found.
pub(super) fn plan_of(
    cluster: &Cluster,
    database: Oid,
    folder: &str,
    options: &SalvageOptions,
    found: &Found,
) -> Plan {
    let mut plan = Plan::default();
    let troubles = found.troubles.iter();
    plan.not_salvaged
        .extend(troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why)));
    let name = name_of(cluster, database);
    let charset = match options.encoding {
        super::Encoding::Raw => Charset::Raw,
        super::Encoding::Utf8 => Charset::to_utf8(encoding_of(cluster, database)),
    };
    for files in &found.unknown {
        let what = format!("the file {}", files.path(0));
        let why = "none of its first pages tells whether it is a table's";
        plan.not_salvaged.push(not_salvaged(&what, why));
    }
    for described in found.describe(cluster, &options.given) {
        let path = described.files.path(0);
        let Some(given) = described.given else {
            let why = format!(
                "no layout fits its rows: describe it in a file for --schema, after a line `-- file {path}`"
            );
            plan.not_salvaged
                .push(not_salvaged(&format!("the file {path}"), &why));
            continue;
        };
        let mut table = Table::of_files(described.files, options.column_choice(), &given);
        (table.database_oid, table.database) = (database, name.clone());
        table.oid = table.files.filenode;
        if let Some(toast) = described.toast {
            table.toast = Some((Table::ANY_TOAST, toast));
        }
        if !options.selection.takes_name(&table.schema, &table.name) {
            continue;
        }
        match fitting::hold(cluster, &table, charset) {
            Ok(()) => plan.tables.push(Planned {
                account: account_of(&table, cluster),
                file: String::new(),
                table,
                is_described: true,
            }),
            Err(error) => plan.not_salvaged.push(not_salvaged(
                &format!("the file {path}"),
                &error.to_string(),
            )),
        }
    }
    name_files(&mut plan.tables, folder);
    plan
}

pub(super) fn name_of(cluster: &Cluster, database: Oid) -> String {
    let known = cluster.databases.get(&database);
    let name = known.and_then(|database| database.name.clone());
    name.unwrap_or_else(|| database.to_string())
}

/// Gives each table the name of its file, without extension.
fn name_files(tables: &mut [Planned], folder: &str) {
    let parts: Vec<[String; 2]> = tables
        .iter()
        .map(|planned| [planned.table.schema.clone(), planned.table.name.clone()])
        .collect();
    let words: Vec<[&str; 2]> = parts
        .iter()
        .map(|[schema, name]| [schema.as_str(), name.as_str()])
        .collect();
    let names = FileNames::of(words.iter().map(|words| words.as_slice()));
    for (planned, words) in tables.iter_mut().zip(&words) {
        let name = names.name(words, planned.table.oid);
        planned.file = format!("{folder}/{name}");
    }
}

impl Found {
    /// Those of the files that `is_wanted` takes.
    pub(super) fn among(
        cluster: &Cluster,
        database: Oid,
        selection: &Selection,
        is_wanted: &dyn Fn(&ForkFiles) -> bool,
    ) -> Self {
        let mut found = Found {
            tables: Vec::new(),
            chunks: Vec::new(),
            sequences: Vec::new(),
            unknown: Vec::new(),
            all: Vec::new(),
            troubles: Vec::new(),
        };
        let homes = cluster.homes.iter();
        for home in homes.filter(|home| home.database == database) {
            match cluster.files(home) {
                Ok(files) => found.all.extend(files),
                Err(trouble) => found.troubles.push(trouble),
            }
        }
        found
            .all
            .retain(|files| files.fork == Fork::Main && files.temporary.is_none());
        let mapped = mapped(cluster, database);
        let wanted = |files: &&ForkFiles| {
            files.filenode >= FIRST_NORMAL_OID
                && !mapped.contains(&files.filenode)
                && is_wanted(files)
        };
        let is_named = |files: &ForkFiles| {
            selection.filenodes.is_empty() || selection.filenodes.contains(&files.filenode)
        };
        for files in found.all.iter().filter(wanted) {
            match cluster.method_of_content(files) {
                Some(AccessMethod::Sequence) if is_named(files) => {
                    found.sequences.push(files.clone());
                }
                Some(AccessMethod::Heap) if chunks::is_alike(cluster, files) => {
                    found.chunks.push(files.clone());
                }
                Some(AccessMethod::Heap) if is_named(files) => found.tables.push(files.clone()),
                None if is_named(files) && files.bytes() > 0 => found.unknown.push(files.clone()),
                // Indexes.
                _ => {}
            }
        }
        found
    }

    /// Columns and long values of each file; files of long values that nothing points at are tables
    /// too.
    fn describe(&self, cluster: &Cluster, given: &[GivenTable]) -> Vec<Described> {
        let mut pairing = chunks::Pairing::new(cluster, &self.chunks);
        let mut all: Vec<Described> = self
            .tables
            .iter()
            .map(|files| describe(cluster, files, given))
            .collect();
        for described in &mut all {
            if let Some(table) = &described.given {
                described.toast = pairing.of(&described.files, table);
            }
        }
        let alone = pairing.without_owner();
        all.extend(alone.iter().map(|files| describe(cluster, files, given)));
        all.sort_by_key(|described| described.files.filenode);
        all
    }
}

/// Catalogs that were rewritten have numbers as tables of people have; those that the map names are
/// known by it.
fn mapped(cluster: &Cluster, database: Oid) -> BTreeSet<Oid> {
    let homes = cluster.homes.iter();
    let maps = homes
        .filter(|home| home.database == database)
        .filter_map(|home| cluster.relation_map(home).ok());
    maps.filter(|map| map.is_right())
        .flat_map(|map| map.mappings.into_iter().map(|(_, filenode)| filenode))
        .collect()
}

/// What a person says of the file, else what its rows say.
fn describe(cluster: &Cluster, files: &ForkFiles, given: &[GivenTable]) -> Described {
    let own = given.iter().find(|table| is_of(table, files));
    let mut described = Described {
        files: files.clone(),
        given: own.cloned(),
        guessed: Vec::new(),
        toast: None,
    };
    if described.given.is_none() {
        let guess = guessed_table(cluster, files, &files.filenode.to_string());
        if let Some((table, columns)) = guess {
            described.given = Some(table);
            described.guessed = columns;
        }
    }
    described
}

/// The line before a statement names its file, by its whole path or its end; without one the name
/// of the table is the number.
fn is_of(table: &GivenTable, files: &ForkFiles) -> bool {
    let path = files.path(0);
    match &table.file {
        Some(file) => path == *file || path.ends_with(&format!("/{file}")),
        None => table.name == files.filenode.to_string(),
    }
}
