//! The rows of a cluster whose server is at work, from its files alone.
//!
//! ```text
//! view ──► write-ahead log on disk applied in memory up to its end ──► tables that are still open ──┬─ whole: settled
//!   ▲                                                                                               │
//!   └────────── lost the same twice: settled as lost; dropped: told; anything else: open still ◄────┘
//! ```
//!
//! Rows are those of the end of the write-ahead log: what commits later does not count. What is
//! missing of a table at one look may be on its way: the server removed, rewrote or cut a file, or
//! has written a page since. So a loss counts when a newer look finds the same. Indexes are asked
//! as after a crash: of what the write-ahead log left alone since the last checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use pgclinic_cluster::{Cluster, ForkFiles, OpenError, selected};
use pgclinic_format::Oid;
use pgclinic_format::wal::FileNumber;
use pgclinic_model::document::{LossPlace, NotChecked, SalvageReport, TableAccount};
use pgclinic_model::{Progress, plural};
use pgclinic_scan::live::{
    CatalogReads, FreshView, Left, Round, Rounds, RoundsEnd, ViewPosition, rounds,
};

use super::error::SalvageError;
use super::finished_tables::FinishedTables;
use super::folder::Folder;
use super::loss_search::{Asked, LossSearch};
use super::lost_databases::DirectoryState;
use super::lost_relations::NamelessFiles;
use super::ordered_files::LineDestination;
use super::plan::{Planned, not_salvaged};
use super::witnesses::Witness;
use super::{
    BesideTables, DatabaseInputs, DatabaseTurn, Destination, FolderWork, Replaying, SalvageOptions,
    catalog_of, closed, databases, kept_encoding, loss_search, open_account, plan_of, replay_space,
    work_of, write_schema,
};
use crate::shape::{MainForks, database_name};

/// The word in the account.
const SOURCE: &str = "running";
/// Why something that was selected is not there any more.
pub(super) const DROPPED: &str = "dropped meanwhile";
pub(super) const UNSETTLED: &str = "the server changed it each time while it was read: what is missing of it was missing at the last look, and need not be lost";

const UNCLAIMED_ONCE: &str = "no relation names them, where names are missing, and the server made checkpoints between all looks: they may be about to be somebody's";

/// What is open of a database.
#[derive(Default)]
struct Open {
    /// Nothing of it was written yet.
    is_new: bool,
    /// Tables, with what the look before lost of them.
    tables: BTreeMap<Oid, TableAccount>,
    /// Sequences and large objects, with what the look before lost of these.
    beside: Option<Vec<LossPlace>>,
    /// Its directory was not there at the look before.
    is_without_directory: bool,
    /// Files that no relation named at the look before, where names are missing.
    nameless: Option<UnclaimedFiles>,
}

/// Files without an owner at some look.
struct UnclaimedFiles {
    files: BTreeSet<FileNumber>,
    position: ViewPosition,
}

impl Open {
    fn new() -> Self {
        Open {
            is_new: true,
            ..Open::default()
        }
    }

    /// Its directory is not there at a first look.
    fn without_directory() -> Self {
        Open {
            is_without_directory: true,
            ..Open::new()
        }
    }

    fn is_empty(&self) -> bool {
        !self.is_new && self.tables.is_empty() && self.beside.is_none() && self.nameless.is_none()
    }
}

/// Salvages a cluster whose server runs, from its files alone.
pub(super) fn salvage(
    cluster: &Cluster,
    folder: Option<Folder>,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, SalvageError> {
    let Some(folder) = folder.filter(|_| matches!(options.destination, Destination::Folder(_)))
    else {
        let why = "the files of a running server go into a directory; for another server name this one's URL as the target, or a base backup of it";
        return Err(SalvageError::Unsuitable(why.into()));
    };
    let finished = FinishedTables::open(&folder, &work_of(cluster, options))?;
    let mut run = Run {
        cluster,
        folder: &folder,
        finished: &finished,
        options,
        progress,
        open: BTreeMap::new(),
        names: BTreeMap::new(),
        catalog_reads: CatalogReads::default(),
        shared_losses: SharedLosses::default(),
        account: None,
    };
    // A server that went away for good leaves what was open as it was.
    let end = rounds(&mut run, progress)?;
    let Some(mut account) = run.account.take() else {
        let why = match end {
            RoundsEnd::Lost(error) => format!("the cluster cannot be opened again: {error}"),
            _ => "no round was begun".into(),
        };
        return Err(SalvageError::Unsuitable(why));
    };
    run.tell_open(&mut account);
    tell_changed(&mut account);
    account.interrupted |= progress.is_interrupted();
    super::tell_interruption(&mut account, &options.destination);
    closed(cluster, options, account)
}

struct Run<'a> {
    cluster: &'a Cluster,
    folder: &'a Folder,
    finished: &'a FinishedTables<'a>,
    options: &'a SalvageOptions,
    progress: &'a dyn Progress,
    open: BTreeMap<Oid, Open>,
    /// Folders of the databases at the destination.
    names: BTreeMap<Oid, String>,
    catalog_reads: CatalogReads,
    shared_losses: SharedLosses,
    /// Since the first view.
    account: Option<SalvageReport>,
}

impl Rounds for Run<'_> {
    /// The files at some moment, with the write-ahead log applied to them.
    type View = FreshView<'static>;
    type Failure = SalvageError;

    fn view(&mut self, _: Round) -> Result<Option<FreshView<'static>>, OpenError> {
        let space = replay_space(self.options);
        // A round takes longer than the server needs for any page: nobody waits.
        FreshView::take(self.cluster, &|| {}, &|view| view.replayed(&space)).map(Some)
    }

    fn round(&mut self, view: &FreshView<'static>, round: Round) -> Result<Left, SalvageError> {
        let mut account = match self.account.take() {
            Some(account) => account,
            None => self.begin(view)?,
        };
        let shared = self.shared_losses.look(view, round, &mut account);
        self.databases(view, round, &mut account)?;
        self.account = Some(account);
        Ok(if self.open.is_empty() && shared == Left::Nothing {
            Left::Nothing
        } else {
            Left::Something
        })
    }
}

impl Run<'_> {
    fn begin(&mut self, view: &FreshView<'_>) -> Result<SalvageReport, SalvageError> {
        let mut account = open_account(view.cluster(), self.options, view.replayed());
        account.source = Some(SOURCE.into());
        account.not_salvaged.push(in_memory_only(view));
        let names = view.replayed_cluster();
        let left = selected::left_behind(&self.options.selection, names);
        account
            .not_salvaged
            .extend(selected::passed_over(names, &left));
        write_schema(view.replayed_cluster(), self.options, &mut account)?;
        for (database, name) in databases(view.replayed_cluster(), &self.options.selection) {
            self.names.insert(database, name);
            self.open.insert(database, Open::new());
        }
        Ok(account)
    }

    fn databases(
        &mut self,
        view: &FreshView<'_>,
        round: Round,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let finished = round.is_first().then_some(self.finished);
        let gap = of_two_moments(view).filter(|gap| !account.not_salvaged.contains(gap));
        account.not_salvaged.extend(gap);
        for (database, open) in take(&mut self.open) {
            if self.progress.is_interrupted() {
                break;
            }
            let Some(name) = self.names.get(&database) else {
                continue;
            };
            if !view.replayed_cluster().databases.contains_key(&database) {
                self.forget(&open)?;
                let what = format!("database {name}");
                account.not_salvaged.push(dropped(what));
                continue;
            }
            if open.is_new {
                match directory(view.replayed_cluster(), database, &open, round) {
                    Directory::There => {}
                    Directory::Awaited => {
                        self.open.insert(database, Open::without_directory());
                        continue;
                    }
                    Directory::Absent(told) => {
                        told.add_to(account);
                        continue;
                    }
                }
            }
            let one = OneRound {
                folder: self.folder,
                view,
                work: FolderWork {
                    to: LineDestination::Folder(self.folder),
                    options: self.options,
                    progress: self.progress,
                    finished,
                },
                is_last: round.is_last(),
            };
            let reads = &mut self.catalog_reads;
            let left = one.database((database, name), open, reads, account)?;
            if !left.is_empty() {
                self.open.insert(database, left);
            }
        }
        Ok(())
    }

    /// Takes the files of tables away that are nobody's any more.
    fn forget(&self, open: &Open) -> Result<(), SalvageError> {
        let files = open.tables.values().filter_map(|table| table.file.as_ref());
        files
            .into_iter()
            .try_for_each(|file| self.folder.remove(file))
    }

    /// What stayed open because the run was stopped, or the cluster cannot be opened any more.
    fn tell_open(&mut self, account: &mut SalvageReport) {
        for (database, open) in take(&mut self.open) {
            let name = self.names.get(&database).map_or("", String::as_str);
            if open.is_new {
                let what = format!("database {name}");
                let why = "its catalogs were on their way, and no newer look could be taken";
                account.not_salvaged.push(not_salvaged(&what, why));
            }
            if let Some(nameless) = open.nameless {
                let what = format!(
                    "{} of database {name}",
                    plural(nameless.files.len() as u64, "file")
                );
                account
                    .not_salvaged
                    .push(not_salvaged(&what, UNCLAIMED_ONCE));
            }
            if open.beside.is_some() {
                let what = format!("sequences and large objects of database {name}");
                account.not_salvaged.push(not_salvaged(&what, UNSETTLED));
            }
            for mut table in open.tables.into_values() {
                unsettle(&mut table, account);
                account.tables.push(table);
            }
        }
    }
}

/// What is done about the directory of a database.
enum Directory {
    There,
    /// The server may be removing it, or have moved it: a newer look tells.
    Awaited,
    /// It was not there at two looks.
    Absent(DirectoryState),
}

fn directory(cluster: &Cluster, database: Oid, open: &Open, round: Round) -> Directory {
    match DirectoryState::of(cluster, database) {
        DirectoryState::There => Directory::There,
        absent if open.is_without_directory => Directory::Absent(absent),
        DirectoryState::Lost(lost) if round.is_last() => {
            let what = format!("database {}", lost.database);
            let why = format!(
                "{}, as the last look found it: a newer one shows whether the server dropped it",
                lost.why
            );
            Directory::Absent(DirectoryState::Unknown(not_salvaged(&what, &why)))
        }
        absent if round.is_last() => Directory::Absent(absent),
        _ => Directory::Awaited,
    }
}

/// What the shared catalogs lost, as the look before saw it.
#[derive(Default)]
struct SharedLosses {
    before: Vec<NotChecked>,
    position: ViewPosition,
    is_settled: bool,
}

impl SharedLosses {
    /// Tells what two looks under WAL that overlaps find, and what the last one finds.
    fn look(&mut self, view: &FreshView<'_>, round: Round, account: &mut SalvageReport) -> Left {
        if self.is_settled {
            return Left::Nothing;
        }
        let troubles = view.replayed_cluster().troubles.iter();
        let gaps = troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why));
        let found: Vec<NotChecked> = gaps
            .filter(|gap| !account.not_salvaged.contains(gap))
            .collect();
        let position = view.position();
        let is_same = found == self.before && self.position.overlaps(position);
        self.is_settled = found.is_empty() || is_same || round.is_last();
        if self.is_settled {
            account.not_salvaged.extend(found);
            return Left::Nothing;
        }
        (self.before, self.position) = (found, position);
        Left::Something
    }
}

/// Nobody knows whether what is missing of the table is lost.
fn unsettle(table: &mut TableAccount, account: &mut SalvageReport) {
    table.unsettled = true;
    let gap = not_salvaged(&what_of(table), UNSETTLED);
    account.not_salvaged.push(gap);
}

struct OneRound<'a> {
    folder: &'a Folder,
    view: &'a FreshView<'a>,
    work: FolderWork<'a>,
    is_last: bool,
}

impl OneRound<'_> {
    /// Writes what is open of a database; says what stays so.
    fn database(
        &self,
        (database, name): (Oid, &str),
        mut open: Open,
        catalog_reads: &mut CatalogReads,
        account: &mut SalvageReport,
    ) -> Result<Open, SalvageError> {
        let cluster = self.view.replayed_cluster();
        let catalog = catalog_of(cluster, database, self.work.options);
        let files = MainForks::of_database(cluster, database);
        let is_torn = !catalog.troubles.is_empty() || !files.troubles.is_empty();
        if !is_torn {
            catalog_reads.are_whole(database);
        } else if catalog_reads.are_read_again(&catalog, self.view.position()) && !self.is_last {
            return Ok(open);
        }
        if self.work.options.without_catalogs || catalog.is_blind() {
            if open.is_new {
                self.blind(database, name, account)?;
            }
            account.tables.extend(open.tables.into_values());
            return Ok(Open::default());
        }
        let place = DatabaseInputs {
            folder: Some(self.folder),
            catalog: &catalog,
            files: &files,
            name,
        };
        let none = BTreeMap::new();
        let replaying = replaying_in(self.view, &none);
        let FolderWork {
            options, progress, ..
        } = self.work;
        let search = loss_search(cluster, &place, &replaying, options, progress);
        let beside = if open.is_new || open.beside.is_some() {
            self.beside((&place, &search), open.beside.take(), account)?
        } else {
            None
        };
        let nameless = if open.is_new || open.nameless.is_some() {
            self.unclaimed(&place, open.nameless.take(), account)?
        } else {
            None
        };
        let plan = plan_of(cluster, &catalog, name, self.work.options);
        let mut planned = plan.tables;
        let mut unknown = BTreeMap::new();
        if open.is_new {
            account.not_salvaged.extend(plan.not_salvaged);
            let kept = kept_encoding(cluster, database, self.work.options);
            account.not_salvaged.extend(kept);
        } else {
            planned.retain(|planned| open.tables.contains_key(&planned.table.oid));
            unknown = self.tell_gone(&place, &planned, &mut open, account)?;
        }
        let finished = self.work.finished;
        planned.retain(|planned| finished.is_none_or(|known| !known.holds(&planned.table)));
        for planned in &mut planned {
            self.tell_not_replayed(planned, account);
        }
        let mut tables = self.work.write_planned(cluster, &catalog, planned)?;
        tables.extend(finished.map_or_else(Vec::new, |known| known.of_database(&catalog)));
        let asked = search.ask(&mut tables);
        let (mut settled, mut left) = self.settle((tables, &asked), open.tables, account)?;
        self.work.count(&search, &asked, &mut settled, account)?;
        account.tables.extend(settled);
        left.append(&mut unknown);
        Ok(Open {
            tables: left,
            beside,
            nameless,
            ..Open::default()
        })
    }

    /// Writes what stands in files that two looks found without an owner, under WAL that overlaps;
    /// what only this one found waits for the next.
    fn unclaimed(
        &self,
        place: &DatabaseInputs<'_>,
        before: Option<UnclaimedFiles>,
        account: &mut SalvageReport,
    ) -> Result<Option<UnclaimedFiles>, SalvageError> {
        let cluster = self.view.replayed_cluster();
        let catalog = place.catalog;
        let none = BTreeMap::new();
        let replaying = replaying_in(self.view, &none);
        let Some(replay) = replaying.replay else {
            return Ok(None);
        };
        let selection = &self.work.options.selection;
        let found = NamelessFiles::of(cluster, catalog, selection, replay);
        let position = self.view.position();
        let Some(before) = before.filter(|before| before.position.overlaps(position)) else {
            let files = found.unclaimed;
            if files.is_empty() {
                account.not_salvaged.extend(not_yet(&found.not_yet, place));
                return Ok(None);
            }
            if self.is_last {
                let what = format!("{} of {}", plural(files.len() as u64, "file"), place.name);
                account
                    .not_salvaged
                    .push(not_salvaged(&what, UNCLAIMED_ONCE));
                return Ok(None);
            }
            return Ok(Some(UnclaimedFiles { files, position }));
        };
        account.not_salvaged.extend(not_yet(&found.not_yet, place));
        let both: BTreeSet<FileNumber> = found
            .unclaimed
            .intersection(&before.files)
            .copied()
            .collect();
        let turn = DatabaseTurn {
            folder: self.folder,
            cluster,
            database: catalog.database,
            name: place.name,
            replaying: &replaying,
        };
        let is_wanted = |files: &ForkFiles| both.contains(&files.number());
        self.work
            .write_unclaimed(turn, place, &is_wanted, account)?;
        Ok(None)
    }

    /// A database without catalogs is taken as it is: no newer look would tell which of its files
    /// is which table.
    fn blind(
        &self,
        database: Oid,
        name: &str,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        let none = BTreeMap::new();
        let turn = DatabaseTurn {
            folder: self.folder,
            cluster: self.view.replayed_cluster(),
            database,
            name,
            replaying: &Replaying {
                as_it_lies: self.view.cluster(),
                not_applied: &none,
                replay: None,
            },
        };
        self.work.write_database(turn, account)
    }

    /// Sequences and large objects; what was lost of them, until the next look has lost the same.
    fn beside(
        &self,
        (place, search): (&DatabaseInputs<'_>, &LossSearch<'_>),
        before: Option<Vec<LossPlace>>,
        account: &mut SalvageReport,
    ) -> Result<Option<Vec<LossPlace>>, SalvageError> {
        let mut found = self
            .work
            .write_beside(self.view.replayed_cluster(), place, search)?;
        let places = match &found.large_objects {
            Some(objects) => objects.places.clone(),
            None => Vec::new(),
        };
        let is_whole = found.sequences.lost.is_empty() && places.is_empty();
        let is_same = found.sequences.lost.is_empty() && before.as_ref() == Some(&places);
        if !is_whole && !is_same && !self.is_last {
            return Ok(Some(places));
        }
        if !is_same {
            let gaps = unsettled_objects(&mut found, place);
            account.not_salvaged.extend(gaps);
        }
        found.tell(account);
        Ok(None)
    }

    /// Tables that were open and are not in the catalogs any more; gives those that are there and
    /// whose columns a newer look may tell.
    fn tell_gone(
        &self,
        place: &DatabaseInputs<'_>,
        planned: &[Planned],
        open: &mut Open,
        account: &mut SalvageReport,
    ) -> Result<BTreeMap<Oid, TableAccount>, SalvageError> {
        let mut unknown = BTreeMap::new();
        let is_planned = |oid: &Oid| planned.iter().any(|own| own.table.oid == *oid);
        let gone: Vec<Oid> = open.tables.keys().copied().collect();
        for oid in gone.into_iter().filter(|oid| !is_planned(oid)) {
            let Some(table) = open.tables.remove(&oid) else {
                continue;
            };
            if place.catalog.relations.contains_key(&oid) && !self.is_last {
                unknown.insert(oid, table);
                continue;
            }
            if let Some(file) = &table.file {
                self.folder.remove(file)?;
            }
            let what = what_of(&table);
            account
                .not_salvaged
                .push(match place.catalog.relations.get(&oid) {
                    None => dropped(what),
                    Some(_) => not_salvaged(&what, "its columns are not known at a newer look"),
                });
        }
        Ok(unknown)
    }

    /// What recovery would still change is not lost: the server has it.
    fn tell_not_replayed(&self, planned: &mut Planned, account: &mut SalvageReport) {
        let Some(replayed) = self.view.replayed() else {
            return;
        };
        let toast = planned.table.toast.iter().map(|(_, files)| files);
        let files = std::iter::once(&planned.table.files).chain(toast);
        let counts = files.filter_map(|files| replayed.not_applied.get(&files.number()));
        let changes: u64 = counts.sum();
        if changes > 0 {
            let what = format!(
                "{} of {}",
                plural(changes, "change"),
                what_of(&planned.account)
            );
            let why = "they stand in the write-ahead log only and could not be applied in memory: --memory gives more of it";
            account.not_salvaged.push(not_salvaged(&what, why));
        }
    }

    /// Those of which nothing is missing or was missing before too, and those that stay open.
    fn settle(
        &self,
        (tables, asked): (Vec<TableAccount>, &Asked),
        mut before: BTreeMap<Oid, TableAccount>,
        account: &mut SalvageReport,
    ) -> Result<(Vec<TableAccount>, BTreeMap<Oid, TableAccount>), SalvageError> {
        let (mut settled, mut left) = (Vec::new(), BTreeMap::new());
        for mut table in tables {
            table.settle();
            let known = before.remove(&table.oid);
            let old = known.as_ref().and_then(|known| known.file.as_ref());
            if let Some(old) = old.filter(|old| table.file.as_ref() != Some(old)) {
                self.folder.remove(old)?;
            }
            let is_same = known.is_some_and(|known| known.loses_as(&table));
            // Its index may have been rewritten since the files were listed. That pages of the
            // table itself were is told, and no reason for another look.
            let is_broken = matches!(
                asked.get(&table.oid),
                Some(Witness::Broken(_) | Witness::Foreign(..) | Witness::Earlier(Some(_)))
            );
            let is_heard = !is_broken || table.changed_pages > 0;
            let is_whole = table.is_whole() && is_heard;
            match is_whole || is_same || self.work.progress.is_interrupted() {
                true => settled.push(table),
                false if !self.is_last => drop(left.insert(table.oid, table)),
                false => {
                    unsettle(&mut table, account);
                    settled.push(table);
                }
            }
        }
        Ok((settled, left))
    }
}

/// Places in large objects that no second look has confirmed.
fn unsettled_objects(found: &mut BesideTables, place: &DatabaseInputs<'_>) -> Option<NotChecked> {
    let objects = found.large_objects.as_mut()?;
    let places = take(&mut objects.places);
    let database = database_name(place.catalog);
    let what = format!("large objects of database {database}");
    (!places.is_empty()).then(|| not_salvaged(&what, UNSETTLED))
}

/// Files that a transaction makes which has not ended: they are lost to nobody.
fn not_yet(files: &BTreeSet<FileNumber>, place: &DatabaseInputs<'_>) -> Option<NotChecked> {
    let what = format!(
        "{} of database {}",
        plural(files.len() as u64, "file"),
        place.name
    );
    let why = "no relation names them: they were made since the last checkpoint, or by a transaction that has not ended, and are not yet anybody's";
    (!files.is_empty()).then(|| NotChecked {
        inherent: true,
        ..not_salvaged(&what, why)
    })
}

/// What the write-ahead log did to files, where all of it was there: indexes that it left alone
/// know the rows of their tables.
pub(super) fn replaying_in<'r>(
    view: &'r FreshView<'_>,
    none: &'r BTreeMap<FileNumber, u64>,
) -> Replaying<'r> {
    let replayed = view.replayed().filter(|replayed| replayed.reached_end);
    let replay = view.cluster().replay();
    Replaying {
        as_it_lies: view.cluster(),
        not_applied: replayed.map_or(none, |replayed| &replayed.not_applied),
        replay: replay.filter(|replay| replayed.is_some() && replay.is_complete()),
    }
}

pub(super) fn what_of(table: &TableAccount) -> String {
    format!(
        "table {}.{} of database {}",
        table.schema, table.table, table.database
    )
}

/// Nothing that is there was left out.
fn dropped(what: String) -> NotChecked {
    NotChecked {
        inherent: true,
        ..not_salvaged(&what, DROPPED)
    }
}

/// What committed is known up to another moment than the changes of pages.
fn of_two_moments(view: &FreshView<'_>) -> Option<NotChecked> {
    let replayed = view.replayed()?;
    let why = "the server removed write-ahead log before it could be applied, time and again: an old and a new version of a row may both stand there";
    (!replayed.reached_end).then(|| not_salvaged("rows of one moment", why))
}

/// What no reader of the files can see.
fn in_memory_only(view: &FreshView<'_>) -> NotChecked {
    let end = view.replayed_cluster().replayed_to();
    let moment = end.map_or_else(String::new, |end| format!(", {end}"));
    let why = format!(
        "rows are those of the end of the write-ahead log on disk{moment}; salvage postgres://… asks the server for the rows of one snapshot"
    );
    NotChecked {
        inherent: true,
        ..not_salvaged("what the server has in its memory only", &why)
    }
}

/// Pages that are of a later moment than the rest.
fn tell_changed(account: &mut SalvageReport) {
    let changed = account
        .tables
        .iter()
        .filter(|table| table.changed_pages > 0);
    let (mut tables, mut pages) = (0u64, 0u64);
    for table in changed {
        tables += 1;
        pages += table.changed_pages;
    }
    if pages > 0 {
        let what = format!(
            "rows on {} of {} as they were",
            plural(pages, "page"),
            plural(tables, "table")
        );
        let why = "the server wrote these pages while it was read: rows that it replaced or deleted there may be missing; salvage postgres://… takes all tables in one snapshot";
        account.not_salvaged.push(not_salvaged(&what, why));
    }
}
