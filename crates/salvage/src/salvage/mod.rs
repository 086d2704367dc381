//! All rows of a cluster, written to a folder, with an account of what could not be had.

mod backup_files;
mod bare;
mod block_rows;
mod blocks;
mod checks;
mod counts;
mod coverage;
mod database_job;
mod database_text;
mod error;
mod finished_tables;
mod fitting;
mod folder;
mod foreign_file;
mod interruption;
mod key_cells;
mod large_object_columns;
pub(crate) mod large_objects;
mod large_row;
mod large_value;
mod load_script;
mod loss_search;
mod lost_databases;
mod lost_keys;
mod lost_relations;
mod map_owner;
mod older_directory;
mod older_files;
mod opening;
mod options;
mod ordered_files;
mod own_keys;
mod pass;
mod plain_columns;
mod plan;
mod reading;
mod recovery_gaps;
mod replaying;
mod roots;
mod row_sink;
mod running;
pub(crate) mod running_losses;
mod sampling;
pub(crate) mod sequences;
mod server;
mod staging;
mod statement;
mod stream;
pub(crate) mod suspects;
mod toast_values;
mod unreadable;
mod without_catalogs;
mod witnesses;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub use bare::{BareTable, salvage_file};
pub use block_rows::{BlockRows, rows_of_block};
pub(crate) use blocks::blocks_of_table;
pub use error::SalvageError;
pub(crate) use finished_tables::FinishedTables;
pub use folder::Durability;
pub(crate) use folder::{Folder, PartFile, write_text};
pub(crate) use interruption::tell as tell_interruption;
pub(crate) use opening::new_account;
use opening::{
    databases, encoding_of, lost_status, only_database, only_table, open_account, plan_of,
};
pub use options::{Destination, Encoding, LOCK_WAIT, Rows, SalvageOptions};
pub(crate) use ordered_files::{Piece, SuspectFile};
use plain_columns::catalog_of;
pub(crate) use plan::{described_columns, is_of_the_system, not_salvaged};
pub(crate) use row_sink::TakeRows;
pub use sampling::guess_columns;
pub use stream::Stream;
pub use without_catalogs::guess_cluster;

use pgclinic_cluster::status::forget_zeroed_status;
use pgclinic_cluster::wal::ReplaySpace;
use pgclinic_cluster::{Catalog, Charset, Cluster, ForkFiles};
use pgclinic_columnar::PackerPlan;
use pgclinic_format::datum::Style;
use pgclinic_format::oid::PG_LARGEOBJECT;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::Progress;
use pgclinic_model::document::{LargeObjectsAccount, NotChecked, SalvageReport, TableAccount};
use pgclinic_servers::ConnectionTarget;
use pgclinic_spill::{Limit, Part};

use crate::schema::{CatalogRoom, SchemaFile};
use crate::shape::{MainForks, Table};
use crate::texts::fields_of;
use database_job::DatabaseJob;
use database_text::{charset_of, kept_encoding, style_of};
use loss_search::{Asked, LossSearch, needs_other_keys};
use lost_keys::Search;
use ordered_files::{LineDestination, OrderedFiles, OutputFile};
use replaying::Replaying;
use row_sink::RowSink;
use sequences::Sequences;
use witnesses::Witnesses;

/// Writes the rows of a cluster, also of a running server's. `elapsed_s` is left at 0: the clock is
/// the caller's, who writes the account of a directory and then calls [`end_of_work`].
pub fn salvage(
    cluster: &Cluster,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, SalvageError> {
    if let Destination::Server(_) = options.destination {
        server::suitable(options)?;
    }
    let folder = match &options.destination {
        Destination::Folder(path) => Some(if options.resume {
            Folder::resume(path, options.durability)?
        } else {
            Folder::prepare(path, options.durability)?
        }),
        Destination::Server(_) | Destination::Stream(_) => None,
    };
    let script_folder = folder.clone();
    if cluster.is_running() {
        return running::salvage(cluster, folder, options, progress);
    }
    let replayed = if cluster.needs_recovery() {
        cluster.replayed(&replay_space(options))
    } else {
        None
    };
    let none = BTreeMap::new();
    let not_applied = replayed.as_ref().map(|(_, own)| &own.not_applied);
    let replaying = Replaying {
        as_it_lies: cluster,
        not_applied: not_applied.unwrap_or(&none),
        replay: replayed.as_ref().and_then(|_| cluster.replay()),
    };
    let mut account = open_account(cluster, options, replayed.as_ref().map(|(_, own)| own));
    account
        .not_salvaged
        .extend(backup_files::gaps(cluster, options, progress));
    let cluster = replayed.as_ref().map_or(cluster, |(cluster, _)| cluster);
    forget_zeroed_status(cluster);
    account.not_salvaged.extend(lost_status(cluster));
    match (&options.destination, folder) {
        (Destination::Server(target), _) => {
            let database = only_database(cluster, &options.selection)?;
            server::load(
                cluster,
                database,
                target,
                options,
                progress,
                &replaying,
                &mut account,
            )?;
        }
        (Destination::Stream(stream), _) => {
            let to = FolderWork {
                to: LineDestination::Stream(stream, &options.spill_folder),
                options,
                progress,
                finished: None,
            };
            to.write_one(cluster, &replaying, &mut account)?;
        }
        (Destination::Folder(_), folder) => {
            let folder = folder.expect("made above");
            let finished = FinishedTables::open(&folder, &work_of(cluster, options))?;
            let to = FolderWork {
                to: LineDestination::Folder(&folder),
                options,
                progress,
                finished: Some(&finished),
            };
            to.write(&folder, cluster, &replaying, &mut account)?;
        }
    }
    write_schema(cluster, options, &mut account)?;
    if let Some(folder) = &script_folder {
        load_script::write(folder, cluster, options, &account)?;
    }
    recovery_gaps::tell_what_pages_show(cluster, &mut account);
    interruption::tell(&mut account, &options.destination);
    closed(cluster, options, account)
}

/// Half of the memory is left for reading.
pub(super) fn replay_space(options: &SalvageOptions) -> ReplaySpace<'_> {
    ReplaySpace {
        memory: options.memory.part(Part::ReplayedPages),
        spill_folder: Some(&options.spill_folder),
    }
}

/// Where the catalogs of a database may stand.
pub(super) fn room_of(options: &SalvageOptions) -> CatalogRoom {
    CatalogRoom::of(&options.memory, &options.spill_folder)
}

/// Writes the schema where somebody asks for it.
fn write_schema(
    cluster: &Cluster,
    options: &SalvageOptions,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let Some(path) = &options.ddl else {
        return Ok(());
    };
    let mut schema = SchemaFile::default();
    for (database, _) in databases(cluster, &options.selection) {
        let described = described_columns(cluster, &cluster.catalog(database), &options.given);
        schema.add(cluster, database, &room_of(options), &described);
    }
    folder::write_text(path, &schema.text(), options.durability)?;
    let own = schema.not_written.into_iter();
    let own: Vec<NotChecked> = own.filter(|one| is_own(one, options, account)).collect();
    account.not_salvaged.extend(own);
    Ok(())
}

/// A person who names tables is told what is left out of those.
fn is_own(left_out: &NotChecked, options: &SalvageOptions, account: &SalvageReport) -> bool {
    let names_table = |table: &TableAccount| holds_name(&left_out.what, &table.table);
    let selection = &options.selection;
    (selection.relations.is_empty() && selection.filenodes.is_empty())
        || account.tables.iter().any(names_table)
}

/// The name stands in the text by itself, and not as a part of another name.
fn holds_name(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    text.match_indices(name).any(|(at, found)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + found.len()..);
        let after = after.and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn closed(
    cluster: &Cluster,
    options: &SalvageOptions,
    mut account: SalvageReport,
) -> Result<SalvageReport, SalvageError> {
    unreadable::tell(cluster, &mut account);
    // What was selected and dropped since fits the selection all the same.
    let was_there = |gap: &NotChecked| gap.why == running::DROPPED;
    let selection = &options.selection;
    // A database without tables is whole without a row.
    let is_found = selection.is_of_whole_databases() && !databases(cluster, selection).is_empty();
    let is_nothing = account.is_empty() && !account.not_salvaged.iter().any(was_there);
    if is_nothing && !is_found && !account.interrupted {
        return Err(SalvageError::NothingSelected);
    }
    account.close();
    Ok(account)
}

/// The account of a whole salvage is written: its folder holds no work any more that could be gone
/// on with.
pub fn end_of_work(folder: &Path) -> Result<(), SalvageError> {
    finished_tables::end(folder)
}

/// The account of a whole salvage into a server is written: the server holds no work any more that
/// could be gone on with.
pub fn end_of_load(target: &ConnectionTarget) -> Result<(), SalvageError> {
    server::end(target)
}

/// A database at work.
#[derive(Clone, Copy)]
struct DatabaseTurn<'a> {
    folder: &'a Folder,
    cluster: &'a Cluster,
    database: Oid,
    /// Its folder at the destination.
    name: &'a str,
    replaying: &'a Replaying<'a>,
}

/// What is known of a database beside its tables.
#[derive(Clone, Copy)]
struct DatabaseInputs<'a> {
    /// None where rows go elsewhere.
    folder: Option<&'a Folder>,
    catalog: &'a Catalog,
    files: &'a MainForks,
    /// Its folder at the destination.
    name: &'a str,
}

impl<'a> DatabaseInputs<'a> {
    /// Of a database whose rows go elsewhere than into a directory.
    fn without_folder(catalog: &'a Catalog, files: &'a MainForks) -> Self {
        DatabaseInputs {
            folder: None,
            catalog,
            files,
            name: "",
        }
    }
}

/// Sequences and large objects of a database.
#[derive(Default)]
struct BesideTables {
    sequences: Sequences,
    large_objects: Option<LargeObjectsAccount>,
    /// What could not be asked of them.
    gaps: Vec<NotChecked>,
}

impl BesideTables {
    fn tell(self, account: &mut SalvageReport) {
        let lost = self.sequences.lost.iter();
        let lost = lost.map(|lost| not_salvaged(&lost.what, &lost.why));
        account.not_salvaged.extend(lost);
        account.not_salvaged.extend(self.gaps);
        account.sequences.extend(self.sequences.found);
        account.large_objects.extend(self.large_objects);
    }
}

/// Writing files.
struct FolderWork<'a> {
    to: LineDestination<'a>,
    options: &'a SalvageOptions,
    progress: &'a dyn Progress,
    finished: Option<&'a FinishedTables<'a>>,
}

/// Who is asked for rows that are lost.
fn loss_search<'a>(
    cluster: &'a Cluster,
    place: &DatabaseInputs<'a>,
    replaying: &Replaying<'a>,
    options: &'a SalvageOptions,
    progress: &'a dyn Progress,
) -> LossSearch<'a> {
    let DatabaseInputs {
        catalog,
        files,
        folder,
        ..
    } = *place;
    LossSearch {
        witnesses: Witnesses {
            cluster,
            as_it_lies: replaying.as_it_lies,
            catalog,
            files,
            options,
            progress,
            not_applied: replaying.not_applied,
            replay: replaying.replay,
        },
        search: Search {
            cluster,
            catalog,
            files,
            options,
            progress,
            replay: replaying.replay,
        },
        folder,
    }
}

/// What must be the same for a second run to go on after a first one.
fn work_of(cluster: &Cluster, options: &SalvageOptions) -> String {
    let control = cluster.control.trusted();
    let system = control.map_or(0, |control| control.system_identifier);
    options.resume_key(&system.to_string())
}

impl FolderWork<'_> {
    fn write(
        &self,
        folder: &Folder,
        cluster: &Cluster,
        replaying: &Replaying<'_>,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        for (database, name) in databases(cluster, &self.options.selection) {
            if account.interrupted {
                account.not_salvaged.push(interruption::not_begun(&name));
                continue;
            }
            if lost_databases::is_gone(cluster, database, account) {
                continue;
            }
            let turn = DatabaseTurn {
                folder,
                cluster,
                database,
                name: &name,
                replaying,
            };
            self.write_database(turn, account)?;
        }
        Ok(())
    }

    fn write_database(
        &self,
        turn: DatabaseTurn<'_>,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let DatabaseTurn {
            folder,
            cluster,
            database,
            name,
            replaying,
        } = turn;
        let options = self.options;
        let catalog = catalog_of(cluster, database, options);
        if options.without_catalogs || catalog.is_blind() {
            let lost = lost_databases::lost_catalogs(cluster, &catalog);
            let lost = lost.filter(|_| !options.without_catalogs);
            account.lost_catalogs.extend(lost);
            return self.write_blind(folder, cluster, database, name, replaying, account);
        }
        let mut plan = plan_of(cluster, &catalog, name, options);
        let files = MainForks::of_database(cluster, database);
        let place = DatabaseInputs {
            folder: Some(folder),
            catalog: &catalog,
            files: &files,
            name,
        };
        let search = loss_search(cluster, &place, replaying, options, self.progress);
        let beside = self.write_beside(cluster, &place, &search)?;
        beside.tell(account);
        plan.count_not_replayed(replaying.not_applied);
        account.not_salvaged.extend(plan.not_salvaged);
        account.tables.append(&mut plan.unread);
        if let Some(finished) = self.finished {
            plan.tables
                .retain(|planned| !finished.holds(&planned.table));
        }
        account
            .not_salvaged
            .extend(kept_encoding(cluster, database, options));
        let mut tables = self.write_planned(cluster, &catalog, plan.tables)?;
        if let Some(finished) = self.finished {
            tables.extend(finished.of_database(&catalog));
        }
        let asked = search.ask(&mut tables);
        self.count(&search, &asked, &mut tables, account)?;
        account.tables.extend(tables);
        self.write_unclaimed(turn, &place, &|_| true, account)?;
        account.interrupted |= self.progress.is_interrupted();
        Ok(())
    }

    /// What stands in files that no relation names, where names are missing, and that `is_wanted`
    /// takes.
    fn write_unclaimed(
        &self,
        turn: DatabaseTurn<'_>,
        place: &DatabaseInputs<'_>,
        is_wanted: &dyn Fn(&ForkFiles) -> bool,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let catalog = place.catalog;
        let mut plan = lost_relations::unclaimed(turn.cluster, place, self.options, is_wanted);
        plan.count_not_replayed(turn.replaying.not_applied);
        account.not_salvaged.append(&mut plan.not_salvaged);
        if let Some(finished) = self.finished {
            plan.tables
                .retain(|planned| !finished.holds(&planned.table));
        }
        let tables = self.write_planned(turn.cluster, catalog, plan.tables)?;
        account.tables.extend(tables);
        Ok(())
    }

    /// The tables of one database.
    fn write_planned(
        &self,
        cluster: &Cluster,
        catalog: &Catalog,
        planned: Vec<plan::Planned>,
    ) -> Result<Vec<TableAccount>, SalvageError> {
        let charset = charset_of(cluster, catalog.database, self.options);
        let style = style_of(cluster, catalog, self.options, &planned);
        let count = planned.len();
        let written = self.write_tables(cluster, planned, charset, &style)?;
        assert_eq!(
            written.len(),
            count,
            "every table of the plan has its account, whatever became of it"
        );
        Ok(written)
    }

    /// Counts lost rows and looks for their keys, and holds rows to keys where this is asked for.
    fn count(
        &self,
        search: &LossSearch<'_>,
        asked: &Asked,
        tables: &mut [TableAccount],
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let Witnesses {
            cluster,
            catalog,
            files,
            ..
        } = search.witnesses;
        let (options, progress) = (self.options, self.progress);
        account.not_salvaged.extend(search.count(tables, asked)?);
        let checks = checks::Checks {
            cluster,
            catalog,
            files,
            options,
            progress,
        };
        checks.count_by_foreign_keys(tables, |table| needs_other_keys(table, asked))?;
        if options.verify {
            account.checks.extend(checks.of_tables(tables)?);
            let counts = counts::Counts {
                cluster,
                catalog,
                files,
                options,
                progress,
            };
            account.counts.extend(counts.of_tables(tables)?);
        }
        Ok(())
    }

    /// Sequences and large objects.
    fn write_beside(
        &self,
        cluster: &Cluster,
        place: &DatabaseInputs<'_>,
        search: &LossSearch<'_>,
    ) -> Result<BesideTables, SalvageError> {
        let DatabaseInputs {
            folder,
            catalog,
            files,
            name,
        } = *place;
        let options = self.options;
        let mut found = BesideTables {
            sequences: sequences::read_all(cluster, catalog, files, &options.selection),
            ..BesideTables::default()
        };
        let Some(folder) = folder else {
            return Ok(found);
        };
        if !found.sequences.is_empty() {
            let mut file = folder.begin(&format!("{name}/sequences.sql"))?;
            file.write(found.sequences.script().as_bytes())?;
            file.finish()?;
        }
        // A person who names tables wants those.
        if options.selection.relations.is_empty() && options.selection.filenodes.is_empty() {
            let file = format!("{name}/large_objects");
            let large_objects::FoundObjects { objects, gaps } = if is_named(catalog, PG_LARGEOBJECT)
            {
                large_objects::of_database(search, options)?
            } else {
                // Its relations mostly have the numbers that they were born with.
                large_objects::of_numbers(cluster, &files_of(cluster, catalog), options)?
            };
            found.gaps = gaps;
            if let Some(objects) = objects {
                let database = crate::shape::database_name(catalog);
                let written = large_objects::write(objects, database, options, folder, &file)?;
                found.large_objects = Some(written);
            }
        }
        Ok(found)
    }

    /// Writes these tables. What a column of a file of columns must hold is known only when all its
    /// values were seen: where one had no place in it, the table is written once more.
    fn write_tables(
        &self,
        cluster: &Cluster,
        planned: Vec<plan::Planned>,
        charset: Charset,
        style: &Arc<Style>,
    ) -> Result<Vec<TableAccount>, SalvageError> {
        let (mut open, mut done) = (planned, Vec::new());
        while !open.is_empty() {
            let again = match self.options.form.layout() {
                Some(_) => open.clone(),
                None => Vec::new(),
            };
            let mut again = again.into_iter();
            let crew = self.crew(cluster, open, charset).styled(Arc::clone(style));
            let written = crew.noting(self.finished).run_refusing()?;
            open = Vec::new();
            for (account, refusals) in written {
                let planned = again.next().filter(|_| !refusals.is_empty());
                match planned.filter(|_| !self.progress.is_interrupted()) {
                    Some(planned) => open.push(planned.holding(refusals)),
                    None => done.push(account),
                }
            }
        }
        Ok(done)
    }

    /// The rows of the one table that fits, and nothing beside them.
    fn write_one(
        &self,
        cluster: &Cluster,
        replaying: &Replaying<'_>,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let options = self.options;
        let mut found = Vec::new();
        for (database, name) in databases(cluster, &options.selection) {
            if lost_databases::is_gone(cluster, database, account) {
                continue;
            }
            let catalog = catalog_of(cluster, database, options);
            let is_blind = options.without_catalogs || catalog.is_blind();
            let mut plan = if is_blind {
                without_catalogs::plan(cluster, database, &name, options).0
            } else {
                plan_of(cluster, &catalog, &name, options)
            };
            plan.count_not_replayed(replaying.not_applied);
            account.not_salvaged.append(&mut plan.not_salvaged);
            let tables = plan.tables.into_iter();
            found.extend(tables.map(|planned| (database, is_blind, planned)));
        }
        let (database, is_blind, planned) = only_table(found, &account.not_salvaged)?;
        let charset = charset_of(cluster, database, options);
        account
            .not_salvaged
            .extend(kept_encoding(cluster, database, options));
        let planned = vec![planned];
        let style = if is_blind {
            Arc::clone(&options.text.style)
        } else {
            style_of(cluster, &cluster.catalog(database), options, &planned)
        };
        account.tables = self.write_tables(cluster, planned, charset, &style)?;
        if !is_blind {
            let catalog = cluster.catalog(database);
            let files = MainForks::of_database(cluster, database);
            let place = DatabaseInputs {
                folder: None,
                catalog: &catalog,
                files: &files,
                name: "",
            };
            let search = loss_search(cluster, &place, replaying, options, self.progress);
            let gaps = search.of_tables(&mut account.tables)?;
            account.not_salvaged.extend(gaps);
        }
        account.interrupted = self.progress.is_interrupted();
        Ok(())
    }

    /// A database whose catalogs cannot be read, or are not to be.
    fn write_blind(
        &self,
        folder: &Folder,
        cluster: &Cluster,
        database: Oid,
        name: &str,
        replaying: &Replaying<'_>,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let options = self.options;
        let (mut plan, sequences, files) = without_catalogs::plan(cluster, database, name, options);
        account.sequences.extend(sequences);
        if options.selection.filenodes.is_empty() && options.selection.relations.is_empty() {
            let objects = large_objects::of_numbers(cluster, &files, options)?.objects;
            let file = format!("{name}/large_objects");
            if let Some(objects) = objects {
                let known = without_catalogs::name_of(cluster, database);
                let written = large_objects::write(objects, known, options, folder, &file)?;
                account.large_objects.push(written);
            }
        }
        plan.count_not_replayed(replaying.not_applied);
        account.not_salvaged.append(&mut plan.not_salvaged);
        let is_finished =
            |planned: &plan::Planned| self.finished.is_some_and(|all| all.holds(&planned.table));
        plan.tables.retain(|planned| !is_finished(planned));
        let charset = charset_of(cluster, database, options);
        account
            .not_salvaged
            .extend(kept_encoding(cluster, database, options));
        let style = &options.text.style;
        let tables = self.write_tables(cluster, plan.tables, charset, style)?;
        account.tables.extend(tables);
        let known = without_catalogs::name_of(cluster, database);
        account.not_salvaged.push(NotChecked {
            inherent: true,
            ..not_salvaged(
                &format!("whether rows are missing without a trace, of database {known}"),
                "its catalogs are not read, which tell the indexes that know it",
            )
        });
        if options.verify {
            let what = format!("keys and counts of the tables of database {known}");
            let why = "its catalogs are not read, which tell the keys";
            account.not_salvaged.push(not_salvaged(&what, why));
        }
        if let Some(finished) = self.finished {
            let known = without_catalogs::name_of(cluster, database);
            account.tables.extend(finished.of_name(&known));
        }
        account.interrupted |= self.progress.is_interrupted();
        Ok(())
    }

    /// The threads, each table in a file of its own.
    fn crew<'c>(
        &'c self,
        cluster: &'c Cluster,
        planned: Vec<plan::Planned>,
        charset: Charset,
    ) -> DatabaseJob<'c> {
        let extension = self.options.form.extension();
        let names: Vec<String> = planned
            .iter()
            .map(|planned| format!("{}.{extension}", planned.file))
            .collect();
        let threads = self.options.threads.get();
        DatabaseJob::new(
            cluster,
            self.options,
            self.progress,
            planned,
            charset,
            |tables| {
                let packers = tables
                    .iter()
                    .map(|(table, _)| self.packer_of(table, charset));
                let files = names.into_iter().zip(tables).zip(packers);
                let files = files.map(|((name, (table, pieces)), packer)| OutputFile {
                    suspects: self.suspects_of(&name, table),
                    name,
                    pieces: *pieces,
                    packer,
                });
                let ahead = self.options.memory.part(Part::OutputAhead);
                RowSink::Files(OrderedFiles::new(self.to, files, threads, ahead))
            },
        )
    }
}

impl FolderWork<'_> {
    /// The file of a table's suspect rows; nothing where one stream takes all of them.
    fn suspects_of(&self, file: &str, table: &Table) -> Option<SuspectFile> {
        match self.to {
            LineDestination::Folder(_) => Some(suspects::suspect_file(file, table)),
            LineDestination::Stream(..) => None,
        }
    }

    /// What gathers the rows of a table, where they are gathered.
    fn packer_of(&self, table: &Table, charset: Charset) -> Option<PackerPlan> {
        let layout = self.options.form.layout()?;
        // Files of two tables more than there are threads may be open.
        let (memory, threads) = (&self.options.memory, self.options.threads);
        let share = memory.limit(Limit::ColumnBatches, threads);
        Some(PackerPlan {
            layout,
            fields: fields_of(&table.columns, charset),
            memory_bytes: usize::try_from(share).unwrap_or(usize::MAX),
        })
    }
}

fn is_named(catalog: &Catalog, relation: Oid) -> bool {
    let known = catalog.relations.get(&relation);
    known.is_some_and(|relation| relation.columns.is_some())
}

/// The files of a database, whoever owns them.
fn files_of(cluster: &Cluster, catalog: &Catalog) -> Vec<ForkFiles> {
    let homes = cluster.homes.iter();
    let own = homes.filter(|home| home.database == catalog.database);
    own.filter_map(|home| cluster.files(home).ok())
        .flatten()
        .filter(|files| files.fork == Fork::Main && files.temporary.is_none())
        .collect()
}
