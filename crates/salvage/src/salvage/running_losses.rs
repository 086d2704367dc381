//! What witnesses in the files of a running server know of rows that the server did not give.
//!
//! ```text
//! view of the files ──► pages without rows, ends of files ──► indexes and maps ──┬─ nothing is missing: settled
//!   ▲                     minus pages whose rows the server's memory has         ├─ a newer view finds the same: lost
//!   └────────────────────────────────────────────────────────────────────────────┴─ anything else: open still
//! ```
//!
//! What is asked of a witness, and when it is believed, is what holds for a salvage from the files
//! themselves ([`super::running`]).

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use pgclinic_cluster::wal::ReplayEffect;
use pgclinic_cluster::{Catalog, Cluster, ForkFiles, OpenError, Persistence, ReadGap, Relation};
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::document::{LossPlace, NotChecked, TableAccount};
use pgclinic_model::{Progress, plural};
use pgclinic_scan::live::{CatalogReads, FreshView, Left, Round, Rounds, RoundsEnd, rounds};

use super::error::SalvageError;
use super::folder::Folder;
use super::loss_search::{Asked, LossSearch};
use super::plan::not_salvaged;
use super::reading::{HELD_ROWS, map_bits};
use super::running::{UNSETTLED, replaying_in, what_of};
use super::witnesses::Witness;
use super::{DatabaseInputs, Replaying, SalvageOptions, loss_search, lost_relations, replay_space};
use crate::shape::MainForks;

/// A page without line pointers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VacantPage {
    /// Its header is of zeros.
    Zeroed,
    /// It has a header and nothing else.
    Empty,
}

/// What the server itself is asked.
pub(crate) trait ServerAnswers {
    /// The pages of a main fork that have no line pointer in its files, in order; why they cannot
    /// be read, otherwise.
    fn vacant_pages(&self, files: &ForkFiles) -> Result<Vec<(BlockNo, VacantPage)>, String>;

    /// Those of the blocks of which the server gives rows, wherever it has them.
    fn blocks_with_rows(&self, table: Oid, blocks: &[BlockNo]) -> BTreeSet<BlockNo>;

    /// Lets the server get on: long enough that a record of WAL that was being written is whole.
    fn wait(&self);
}

/// The search for rows that the server did not give, in one of its databases.
pub(crate) struct RunningLossSearch<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) database: Oid,
    pub(crate) folder: &'a Folder,
    pub(crate) options: &'a SalvageOptions,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) server: &'a dyn ServerAnswers,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct RunningLosses {
    /// The tables that were given, each counted where somebody was asked.
    pub(crate) tables: Vec<TableAccount>,
    /// What could not be asked, and what only the catalogs in the files know.
    pub(crate) gaps: Vec<NotChecked>,
}

impl RunningLossSearch<'_> {
    /// Asks for these tables, which are as they were read.
    pub(crate) fn of_tables(
        &self,
        tables: Vec<TableAccount>,
    ) -> Result<RunningLosses, SalvageError> {
        let mut run = Run {
            search: self,
            open: tables.into_iter().map(|table| (table.oid, table)).collect(),
            before: BTreeMap::new(),
            catalog_reads: CatalogReads::default(),
            are_catalogs_told: false,
            unasked: None,
            found: RunningLosses::default(),
        };
        let end = rounds(&mut run, self.progress)?;
        let mut found = run.ended(&end);
        let unreadable = self.cluster.unreadable().into_iter();
        let gaps = unreadable.map(|trouble| not_salvaged(&trouble.what, &trouble.why));
        let gaps: Vec<NotChecked> = gaps.filter(|gap| !found.gaps.contains(gap)).collect();
        found.gaps.extend(gaps);
        Ok(found)
    }
}

struct Run<'r> {
    search: &'r RunningLossSearch<'r>,
    /// As they were read.
    open: BTreeMap<Oid, TableAccount>,
    /// Those of them of which the view before missed something.
    before: BTreeMap<Oid, TableAccount>,
    catalog_reads: CatalogReads,
    are_catalogs_told: bool,
    /// Why nobody could be asked in the last view.
    unasked: Option<String>,
    found: RunningLosses,
}

/// What one view shows.
#[derive(Clone, Copy)]
struct View<'v> {
    fresh: &'v FreshView<'static>,
    place: DatabaseInputs<'v>,
    replaying: &'v Replaying<'v>,
}

impl Rounds for Run<'_> {
    type View = FreshView<'static>;
    type Failure = SalvageError;

    fn view(&mut self, _: Round) -> Result<Option<FreshView<'static>>, OpenError> {
        let space = replay_space(self.search.options);
        let replay = |view: &Cluster| view.replayed_catalogs(&space);
        FreshView::take(self.search.cluster, &|| self.search.server.wait(), &replay).map(Some)
    }

    fn round(&mut self, fresh: &FreshView<'static>, round: Round) -> Result<Left, SalvageError> {
        let cluster = fresh.replayed_cluster();
        let catalog = cluster.catalog(self.search.database);
        let files = MainForks::of_database(cluster, self.search.database);
        let none = BTreeMap::new();
        let replaying = replaying_in(fresh, &none);
        let troubles: Vec<&ReadGap> = catalog.troubles.iter().chain(&files.troubles).collect();
        if troubles.is_empty() {
            self.catalog_reads.are_whole(self.search.database);
        } else if self.is_read_again(&catalog, fresh) && !round.is_last() {
            return Ok(Left::Something);
        }
        self.unasked = why_unasked(fresh, &catalog, &replaying);
        if self.unasked.is_some() && !round.is_last() {
            self.search.server.wait();
        }
        if self.unasked.is_some() {
            return Ok(Left::Something);
        }
        if !take_once(&mut self.are_catalogs_told) {
            let told = troubles.iter().map(|gap| not_salvaged(&gap.what, &gap.why));
            self.found.gaps.extend(told);
            self.tell_lost_relations(&catalog);
        }
        let view = View {
            fresh,
            place: DatabaseInputs {
                folder: Some(self.search.folder),
                catalog: &catalog,
                files: &files,
                name: "",
            },
            replaying: &replaying,
        };
        self.ask(&view, round)?;
        Ok(if self.open.is_empty() {
            Left::Nothing
        } else {
            Left::Something
        })
    }
}

/// Whether it was so before; now it is.
fn take_once(flag: &mut bool) -> bool {
    std::mem::replace(flag, true)
}

/// Why no witness can be believed in a view.
fn why_unasked(
    fresh: &FreshView<'_>,
    catalog: &Catalog,
    replaying: &Replaying<'_>,
) -> Option<String> {
    if catalog.is_blind() {
        return Some("the catalogs in its files cannot be read".into());
    }
    if replaying.replay.is_some() {
        return None;
    }
    let end = fresh.cluster().replay().map_or_else(String::new, |replay| {
        format!(" (it ends at {}: {})", replay.end.record, replay.end.why)
    });
    Some(format!(
        "the write-ahead log since its last checkpoint cannot be read whole{end}, so that nobody knows what its memory holds"
    ))
}

impl Run<'_> {
    fn is_read_again(&mut self, catalog: &Catalog, fresh: &FreshView<'_>) -> bool {
        self.catalog_reads.are_read_again(catalog, fresh.position())
    }

    /// Relations whose rows in `pg_class` are lost: the server does not know them any more.
    fn tell_lost_relations(&mut self, catalog: &Catalog) {
        let lost = lost_relations::not_whole(catalog, &self.search.options.selection);
        let advice = "; the server does not list it, and a salvage of its data directory reads it from the files";
        let gaps = lost.into_iter().map(|gap| NotChecked {
            why: format!("{}{advice}", gap.why),
            ..gap
        });
        self.found.gaps.extend(gaps);
    }

    fn ask(&mut self, view: &View<'_>, round: Round) -> Result<(), SalvageError> {
        self.leave_out_rewritten(view);
        let RunningLossSearch {
            options, progress, ..
        } = *self.search;
        let cluster = view.fresh.replayed_cluster();
        let search = loss_search(cluster, &view.place, view.replaying, options, progress);
        let none = BTreeSet::new();
        let open = self.open.values();
        let looked = open.map(|table| self.with_vacant(table, view, &none));
        let (mut tables, mut unread) = (Vec::new(), None);
        for table in looked {
            match table {
                Ok(table) => tables.push(table),
                // A file that went away meanwhile has a newer view, or is missing in that one too.
                Err(why) => unread = Some(why),
            }
        }
        self.unasked = unread;
        let mut asked = search.ask(&mut tables);
        for table in &mut tables {
            let as_read = self.open.get(&table.oid);
            let is_missed = as_read.is_some_and(|as_read| !table.loses_as(as_read));
            let as_read = as_read.filter(|_| is_missed);
            let again = as_read.and_then(|own| self.without_memory(own, table, view, &search));
            if let Some((again, witness)) = again {
                *table = again;
                asked.extend(witness);
            }
        }
        self.settle(tables, &asked, &search, round)
    }

    /// A table that was truncated or rewritten since it was read has other files, and those that
    /// its rows stood in are gone.
    fn leave_out_rewritten(&mut self, view: &View<'_>) {
        let DatabaseInputs { catalog, files, .. } = view.place;
        for (oid, table) in take(&mut self.open) {
            let relation = catalog.relations.get(&oid);
            let now = relation.map(|relation| files.of(catalog, relation).filenode);
            if table.filenode == 0 || now == Some(table.filenode) {
                self.open.insert(oid, table);
                continue;
            }
            let what = format!("rows of {} beside its indexes", what_of(&table));
            let why = "it was dropped, truncated or rewritten when its rows were read: what knew of them is gone";
            self.found.gaps.push(not_salvaged(&what, why));
            self.found.tables.push(table);
        }
    }

    /// The table with its pages without rows, but those in `known`; why they cannot be read,
    /// otherwise.
    fn with_vacant(
        &self,
        as_read: &TableAccount,
        view: &View<'_>,
        known: &BTreeSet<BlockNo>,
    ) -> Result<TableAccount, String> {
        let mut table = as_read.clone();
        let DatabaseInputs { catalog, files, .. } = view.place;
        let relation = catalog.relations.get(&table.oid);
        let is_lasting = |own: &&Relation| own.persistence == Persistence::Permanent;
        let Some(relation) = relation.filter(is_lasting) else {
            return Ok(table);
        };
        let own = files.of(catalog, relation);
        let vacant = self.search.server.vacant_pages(&own)?;
        let page_bytes = u64::from(self.search.cluster.build.block_size);
        if table.pages.row_pages == 0 {
            let all = own.bytes() / page_bytes;
            table.pages.row_pages = all.saturating_sub(vacant.len() as u64);
            table.pages.page_rows = table.rows.live;
        }
        for (block, state) in vacant {
            if known.contains(&block) {
                continue;
            }
            table.pages.note_vacant(block);
            // Our own reader has told of a page that the server refused.
            let is_told = as_read.pages.damaged.contains(&block);
            if state == VacantPage::Zeroed && !is_told {
                table.empty_pages += 1;
                if is_marked(view, &own, block) {
                    table.damaged_pages += 1;
                    table.pages.unread += 1;
                    table.pages.damaged.push(block);
                    table.places.push(LossPlace::page(block, HELD_ROWS));
                }
            }
        }
        table.settle();
        Ok(table)
    }

    /// The same without the pages that are vacant in the files and have rows in the server's
    /// memory, and what its witness says then.
    fn without_memory(
        &self,
        as_read: &TableAccount,
        table: &TableAccount,
        view: &View<'_>,
        search: &LossSearch<'_>,
    ) -> Option<(TableAccount, Asked)> {
        let vacant = table.pages.vacant.iter();
        let blocks: Vec<BlockNo> = vacant.flat_map(|(from, to)| *from..*to).collect();
        let known = self.search.server.blocks_with_rows(table.oid, &blocks);
        let mut again = [self.with_vacant(as_read, view, &known).ok()?];
        let asked = search.ask(&mut again);
        let [again] = again;
        Some((again, asked))
    }

    fn settle(
        &mut self,
        tables: Vec<TableAccount>,
        asked: &Asked,
        search: &LossSearch<'_>,
        round: Round,
    ) -> Result<(), SalvageError> {
        let mut settled = Vec::new();
        for table in tables {
            let Some(as_read) = self.open.get(&table.oid) else {
                continue;
            };
            let before = self.before.remove(&table.oid);
            // Its index may have been rewritten since the files were listed.
            let is_heard = !matches!(asked.get(&table.oid), Some(Witness::Broken(_)));
            let is_whole = is_heard && table.loses_as(as_read);
            if is_whole || before.is_some_and(|before| before.loses_as(&table)) {
                self.open.remove(&table.oid);
                settled.push(table);
            } else if !round.is_last() {
                self.before.insert(table.oid, table);
            }
        }
        self.found.gaps.extend(search.count(&mut settled, asked)?);
        self.found.tables.append(&mut settled);
        Ok(())
    }

    /// What stayed open is as it was read.
    fn ended(mut self, end: &RoundsEnd) -> RunningLosses {
        if let Some(first) = self.open.values().next() {
            let database = &first.database;
            let open = plural(self.open.len() as u64, "table");
            let what = format!(
                "whether rows are missing that indexes and visibility maps know, of {open} of database {database}"
            );
            let why = match (end, self.unasked.take()) {
                (RoundsEnd::Lost(error), _) => {
                    format!("the files of the server cannot be opened again: {error}")
                }
                (_, Some(why)) => why,
                (_, None) => UNSETTLED.into(),
            };
            self.found.gaps.push(not_salvaged(&what, &why));
        }
        let open = take(&mut self.open);
        self.found.tables.extend(open.into_values());
        self.found
    }
}

/// The visibility map says something of a page of zeros that no record since the last checkpoint
/// touches: what it says is as old as the page.
fn is_marked(view: &View<'_>, files: &ForkFiles, block: BlockNo) -> bool {
    let replay = view.replaying.replay;
    let fate = replay.map(|replay| replay.fate(files.number(), Fork::Main, block));
    let bits = || map_bits(view.fresh.replayed_cluster(), files, block);
    fate == Some(ReplayEffect::Kept) && bits() != 0
}

/// One line for tables of which nobody could be asked, if there are any that have witnesses.
pub(crate) fn unasked(database: &str, tables: usize, why: &str) -> Option<NotChecked> {
    let what = format!(
        "whether rows are missing that indexes and visibility maps know, of {} of database {database}",
        plural(tables as u64, "table")
    );
    let why = format!(
        "these are read from the files of the server, and it does not give them (a superuser, or a role with EXECUTE on pg_read_binary_file, pg_ls_dir and pg_stat_file): {why}"
    );
    (tables > 0).then(|| not_salvaged(&what, &why))
}
