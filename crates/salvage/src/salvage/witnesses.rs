//! What indexes say of rows that the pages of their tables do not have.
//!
//! ```text
//! leaves of one index a table ─► entries that lead ─┬─ to a page that gave rows or may have: nothing is said
//!                                                   ├─ past the end, or into a segment that is missing  ─► missing blocks
//!                                                   ├─ to a page of zeros, or without any line pointer  ─► emptied blocks
//!                                                   └─ to a page of which something could not be read   ─► damaged blocks
//! ```
//!
//! VACUUM removes the entries of a row before it frees its line pointer, and its line pointer
//! before it cuts the page off, so that an entry which nobody killed names a page that must be
//! there with something on it. The row may be one that was deleted and that VACUUM has not passed:
//! so many rows are lost at most. Truth: `src/backend/access/heap/vacuumlazy.c`.

mod before_recovery;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_cluster::wal::{Replay, ReplayEffect};
use pgclinic_cluster::{
    BlockSet, Catalog, Cluster, Comparison, ForkFiles, Leaves, MarkedBeyond, Persistence, Pieces,
    Relation, each_leaf, each_row_named, read_block,
};
use pgclinic_format::btree::BtreePage;
use pgclinic_format::index_entries::names_rows;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, LpFlags, Lsn, Oid, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{Estimate, LossPlace, ROOT_BLOCKS, TableAccount};
use pgclinic_model::{plural, verb_of};
use pgclinic_source::Presence;
use pgclinic_spill::Part;

use super::foreign_file::ForeignFile;
use super::own_keys::KeySamples;
use super::reading::{ALL_VISIBLE, map_bits};
use super::roots::{EntrySums, RootPages, UsedItems, units_within};
use super::statement::{Extent, Statement, note_emptied, note_items};
use super::{Rows, SalvageOptions};
use crate::shape::MainForks;

/// Blocks whose bits in the visibility map are looked up one by one.
const MAP_LOOKS_MAX: usize = 4096;

/// What the indexes of one database share.
pub(super) struct Witnesses<'a> {
    pub(super) cluster: &'a Cluster,
    /// The same before WAL was applied in memory.
    pub(super) as_it_lies: &'a Cluster,
    pub(super) catalog: &'a Catalog,
    pub(super) files: &'a MainForks,
    pub(super) options: &'a SalvageOptions,
    pub(super) progress: &'a dyn Progress,
    /// Files that the write-ahead log would still change.
    pub(super) not_applied: &'a BTreeMap<FileNumber, u64>,
    /// What it did to files, where it was applied in memory: to tables, while indexes and maps stay
    /// as they lie there.
    pub(super) replay: Option<&'a Replay>,
}

/// Who speaks for a table.
#[derive(Debug)]
pub(super) enum Witness {
    /// An index that has all rows, and that can be read whole.
    Whole(Statement),
    /// There are indexes that have all rows, and none of them can be read whole; what the last of
    /// them says all the same.
    Broken(Statement),
    /// No B-tree has all its rows; entries of another index lead to rows that are lost, or it
    /// cannot be read whole.
    Partial(Statement),
    /// No index has all its rows, and none that can be read misses any.
    Absent,
    /// It has indexes, which recovery would change: they are of an earlier moment than its pages.
    /// With the first page of zeros that may have held rows they would name.
    Earlier(Option<BlockNo>),
    /// Every index with all rows that could be read has other keys than the rows that its entries
    /// lead to; whose file is another relation's, as far as that is known.
    Foreign(Statement, ForeignFile),
    /// Nobody is asked.
    Unasked,
}

/// The indexes of a table.
#[derive(Default)]
struct Indexes<'a> {
    /// B-trees that have an entry for every row.
    full: Vec<(&'a Relation, ForkFiles)>,
    /// Others.
    partial: Vec<(&'a Relation, AccessMethod, ForkFiles)>,
}

/// What an index is asked about.
#[derive(Clone, Copy)]
struct Hearing<'a> {
    table: &'a Relation,
    account: &'a TableAccount,
    heap: &'a ForkFiles,
    extent: &'a Extent,
    /// Leaves whose entries count.
    hears: &'a dyn Fn(BlockNo) -> bool,
    /// Pages of the table whose line pointers are those that the entries were made for.
    tells: &'a dyn Fn(BlockNo) -> bool,
}

impl Witnesses<'_> {
    /// Asks for all tables, several at a time.
    pub(super) fn ask(&self, tables: &[TableAccount]) -> Vec<Witness> {
        let indexes = self.indexes();
        let none = Indexes::default();
        let next = AtomicUsize::new(0);
        let found: Mutex<BTreeMap<usize, Witness>> = Mutex::default();
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(table) = tables.get(number) else {
                    return;
                };
                let own = indexes.get(&table.oid).unwrap_or(&none);
                let witness = self.witness_of(table, own);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.insert(number, witness);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.threads.get().min(tables.len()) {
                scope.spawn(work);
            }
            work();
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.into_values().collect()
    }

    /// Indexes that are in use, by table, the smallest first: it is read quickest.
    fn indexes(&self) -> HashMap<Oid, Indexes<'_>> {
        let mut found: HashMap<Oid, Indexes<'_>> = HashMap::new();
        for relation in self.catalog.relations.values() {
            let Some((index, method)) = relation.index.as_ref().zip(relation.page_method()) else {
                continue;
            };
            if index.valid && index.ready && index.live && names_rows(method) {
                let files = self.files.of(self.catalog, relation);
                let own = found.entry(index.table).or_default();
                if method == AccessMethod::Btree && !index.has_predicate {
                    own.full.push((relation, files));
                } else {
                    own.partial.push((relation, method, files));
                }
            }
        }
        for indexes in found.values_mut() {
            let full = &mut indexes.full;
            full.sort_by_key(|(relation, files)| (files.bytes(), relation.oid));
        }
        found
    }

    fn witness_of(&self, table: &TableAccount, indexes: &Indexes<'_>) -> Witness {
        let Some(relation) = self.catalog.relations.get(&table.oid) else {
            return Witness::Absent;
        };
        let is_left_out = self.files.leave_out(self.cluster, self.catalog, relation);
        if is_left_out || !self.can_ask(relation) || self.files.unseen(relation).is_some() {
            return Witness::Unasked;
        }
        let files = self.files.of(self.catalog, relation);
        let extent = Extent::of(table, &files, self.cluster);
        let is_later = |files: &ForkFiles| {
            let replay = self.replay;
            replay.is_some_and(|replay| replay.touches(files.number()))
        };
        let heard = Hearing {
            table: relation,
            account: table,
            heap: &files,
            extent: &extent,
            hears: &|_| true,
            tells: &|_| true,
        };
        let (mut broken, mut foreign) = (None, None);
        let full = indexes.full.iter();
        for (index, own) in full.filter(|(_, files)| !is_later(files)) {
            let (mut statement, is_whole) = self.hear_leaves(index, own, &heard);
            if statement.is_foreign {
                foreign = Some(statement);
                continue;
            }
            let is_one_moment = !self.not_applied.contains_key(&own.number());
            let is_current = is_one_moment && statement.outdated == 0;
            if is_whole && is_current && self.counts_enough(&statement, table) {
                statement.foreign = foreign.map(|other: Statement| other.index);
                return Witness::Whole(statement);
            }
            statement.is_short = is_whole && is_one_moment;
            broken = Some(statement);
            if self.progress.is_interrupted() {
                break;
            }
        }
        match (broken, foreign) {
            (Some(statement), _) => Witness::Broken(statement),
            (None, Some(statement)) => self.foreign(relation, statement),
            (None, None) if indexes.full.is_empty() => self.partial(&heard, indexes),
            (None, None) => self.earlier(&heard, &indexes.full),
        }
    }

    fn foreign(&self, table: &Relation, statement: Statement) -> Witness {
        let file = self.foreign_file(table, statement.oid);
        Witness::Foreign(statement, file)
    }

    /// What indexes say that need not have all rows.
    fn partial(&self, heard: &Hearing<'_>, indexes: &Indexes<'_>) -> Witness {
        let is_later = |files: &ForkFiles| {
            let replay = self.replay;
            replay.is_some_and(|replay| replay.touches(files.number()))
        };
        let mut asked = indexes.partial.iter();
        let asked = asked.by_ref().filter(|(_, _, files)| !is_later(files));
        let spoken: Vec<Statement> = asked.map(|index| self.hear_partial(index, heard)).collect();
        if spoken.is_empty() && !indexes.partial.is_empty() {
            let files: Vec<_> = indexes.partial.iter().map(|(_, _, files)| files).collect();
            return Witness::Earlier(self.doubted_zeros(heard, &files, None));
        }
        // One that misses rows says more than one that is hurt.
        let most = spoken.into_iter().max_by_key(|own| {
            let missed = own.missing + own.emptied;
            (missed, own.lost, own.is_hurt, own.outdated)
        });
        let most = most.filter(|own| own.speaks() || own.is_hurt);
        most.map_or(Witness::Absent, Witness::Partial)
    }

    /// Entries of an index that lead to what is not there, and whether it is whole. Pages of
    /// a GIN index that nothing leads to any more may name rows of long ago: they count only where
    /// `pg_class` counts their blocks too.
    fn hear_partial(
        &self,
        (index, method, files): &(&Relation, AccessMethod, ForkFiles),
        heard: &Hearing<'_>,
    ) -> Statement {
        let extent = heard.extent;
        let counted = u64::try_from(heard.table.relpages).unwrap_or(0);
        let is_known = |block: BlockNo| *method != AccessMethod::Gin || u64::from(block) < counted;
        let mut statement = Statement {
            index: index.qualified_name(),
            oid: index.oid,
            ..Statement::default()
        };
        let mut sums = EntrySums::new(extent.end);
        let silent = each_row_named(self.cluster, files, *method, &mut |tid, _| {
            sums.take(tid);
            let is_lost = extent.is_suspect(tid.block)
                && is_known(tid.block)
                && self.options.selection.takes_block(tid.block.into());
            if is_lost {
                statement.take(tid.block, extent);
            }
            !self.progress.is_interrupted()
        });
        // Beside a server nothing tells of what moment an entry of these is; and pages of a GIN
        // index that nothing leads to any more name rows of long ago.
        if *method != AccessMethod::Gin && !self.cluster.is_running() {
            self.each_lacking(&sums, heard, &mut |used| {
                each_row_named(self.cluster, files, *method, &mut |tid, lsn| {
                    if let Some(lack) = used.lack(tid, lsn) {
                        statement.take_item(tid, lack);
                    }
                    !self.progress.is_interrupted()
                });
            });
            statement.settle_items();
        }
        // A page of zeros may be one that a crash left behind: it counts where rows may have stood
        // that it would name.
        let is_emptied = silent.zeroed > 0 && extent.vacant.blocks().next().is_some();
        statement.is_hurt = files.segments.is_empty()
            || self.is_cut(index, files)
            || silent.broken > 0
            || is_emptied;
        statement
    }

    /// `pg_class` counts more pages of the index than its files have, and no VACUUM truncates one.
    /// A crash resets an unlogged one without a word to `pg_class`, and from 18 on what that says
    /// may have been restored.
    fn is_cut(&self, index: &Relation, files: &ForkFiles) -> bool {
        let blocks = files.bytes() / u64::from(self.cluster.build.block_size);
        let is_short = i64::try_from(blocks).is_ok_and(|blocks| blocks < index.relpages.into());
        is_short && self.cluster.counts_own_pages() && index.persistence == Persistence::Permanent
    }

    fn can_ask(&self, relation: &Relation) -> bool {
        let may_compare = |what| self.cluster.may_compare(what);
        match relation.persistence {
            // Beside a server what WAL left alone since the last checkpoint is on the disk, and a
            // second look confirms what is lost.
            Persistence::Permanent => {
                may_compare(Comparison::SalvagedRowsWithEntries)
                    || (self.cluster.is_running() && self.replay.is_some())
            }
            Persistence::Unlogged => may_compare(Comparison::UnloggedRowsWithEntries),
            // Its files are named otherwise, and are removed after a crash.
            Persistence::Temporary => false,
        }
    }

    /// An index that has fewer entries than there are rows has lost some itself, and one may lead
    /// where nothing ever was.
    fn counts_enough(&self, statement: &Statement, table: &TableAccount) -> bool {
        let is_cut = !self.takes_all_blocks();
        (is_cut || statement.entries >= table.rows.live) && !statement.contradicts_itself(table)
    }

    pub(super) fn takes_all_blocks(&self) -> bool {
        self.options.selection.blocks.is_none()
    }

    /// What the leaves of an index say, and whether all of it was there.
    fn hear_leaves(
        &self,
        index: &Relation,
        files: &ForkFiles,
        heard: &Hearing<'_>,
    ) -> (Statement, bool) {
        let mut statement = Statement {
            index: index.qualified_name(),
            oid: index.oid,
            ..Statement::default()
        };
        let (extent, selection) = (heard.extent, &self.options.selection);
        let mut sums = EntrySums::new(extent.end);
        let mut samples = KeySamples::new(index, heard.table);
        let moment = self.moment();
        let seen = each_leaf(self.cluster, files, Leaves::Sound, &mut |block, leaf| {
            let is_heard = (heard.hears)(block);
            let is_later = moment.is_some_and(|moment| leaf.page().pd_lsn() > moment);
            for (item, tuple) in leaf.data() {
                let counts = is_heard && !is_killed(leaf, item);
                for tid in tuple.rows() {
                    sums.take(tid);
                    if !counts {
                        if !is_heard && extent.vacant.holds(tid.block) {
                            statement.unheard_blocks.insert(tid.block);
                        }
                        continue;
                    }
                    statement.entries += 1;
                    if !extent.is_suspect(tid.block) {
                        if !is_later {
                            samples.meet(tid, tuple);
                        }
                    } else if selection.takes_block(tid.block.into()) {
                        statement.take(tid.block, extent);
                    }
                }
            }
            !self.progress.is_interrupted()
        });
        let pages = RootPages {
            cluster: self.cluster,
            pieces: &Pieces::of(heard.heap, self.cluster.build),
            tells: heard.tells,
            moment,
        };
        statement.is_foreign = samples.compare(&pages).is_broken();
        if !statement.is_foreign {
            self.hear_items(files, &sums, heard, &mut statement);
        }
        (statement, seen.is_whole() && !self.is_cut(index, files))
    }

    /// Entries of a B-tree that lead to line pointers that their pages do not have. Beside a server
    /// a leaf that was written after the rows were taken names newer ones.
    fn hear_items(
        &self,
        files: &ForkFiles,
        sums: &EntrySums,
        heard: &Hearing<'_>,
        statement: &mut Statement,
    ) {
        let moment = self.moment();
        self.each_lacking(sums, heard, &mut |used| {
            each_leaf(self.cluster, files, Leaves::Sound, &mut |block, leaf| {
                let is_later = moment.is_some_and(|moment| leaf.page().pd_lsn() > moment);
                let leaves = (!is_later && (heard.hears)(block)).then(|| leaf.data());
                let entries = leaves.into_iter().flatten();
                for (_, tuple) in entries.filter(|(item, _)| !is_killed(leaf, *item)) {
                    for tid in tuple.rows() {
                        if let Some(lack) = used.lack(tid, leaf.page().pd_lsn()) {
                            statement.take_item(tid, lack);
                        }
                    }
                }
                !self.progress.is_interrupted()
            });
        });
        statement.settle_items();
    }

    /// Gives the line pointers of the parts of a table whose sum is not that of the entries, as
    /// many at once as there is memory for.
    fn each_lacking(
        &self,
        sums: &EntrySums,
        heard: &Hearing<'_>,
        each: &mut dyn FnMut(&UsedItems),
    ) {
        // Rows that a server printed come without their line pointers.
        if heard.account.pages.roots.is_empty() {
            return;
        }
        let selection = &self.options.selection;
        let takes = |unit: &BlockNo| {
            let mut blocks = (0..ROOT_BLOCKS).map(|block| unit.saturating_mul(ROOT_BLOCKS) + block);
            selection.blocks.is_none() || blocks.any(|block| selection.takes_block(block.into()))
        };
        let mut units = sums.differing(&heard.account.pages.roots);
        units.retain(takes);
        let threads = self.options.threads.get() as u64;
        let bytes = self.options.memory.part_bytes(Part::KeySort) / threads;
        let pages = RootPages {
            cluster: self.cluster,
            pieces: &Pieces::of(heard.heap, self.cluster.build),
            tells: &|block| {
                let is_suspect = heard.extent.is_suspect(block);
                !is_suspect && selection.takes_block(block.into()) && (heard.tells)(block)
            },
            moment: self.moment(),
        };
        for units in units.chunks(units_within(bytes)) {
            if self.progress.is_interrupted() {
                return;
            }
            each(&UsedItems::read(units, &pages));
        }
    }

    /// The moment that rows are of, beside a server.
    pub(super) fn moment(&self) -> Option<Lsn> {
        let moment = self.cluster.replayed_to();
        moment.filter(|_| self.cluster.is_running())
    }

    /// Puts into the account of a table what the witness says of its pages.
    pub(super) fn note(&self, witness: &Witness, table: &mut TableAccount) {
        let (statement, is_whole) = match witness {
            Witness::Whole(statement) => (statement, true),
            Witness::Broken(statement) => (statement, false),
            Witness::Partial(statement) => return self.note_partial(statement, table),
            Witness::Foreign(statement, ForeignFile::OfTable(other)) => {
                return note_foreign(statement, other, table);
            }
            Witness::Foreign(..) | Witness::Absent | Witness::Earlier(_) | Witness::Unasked => {
                return;
            }
        };
        if is_whole {
            table.witness = Some(statement.index.clone());
        }
        if let Some(foreign) = &statement.foreign {
            table.notes.push(format!(
                "entries of {foreign} have other keys than the rows that they lead to, and those of {} have theirs: that index is damaged",
                statement.index
            ));
        }
        if statement.contradicts_itself(table) {
            let entries = statement.missing + statement.lost;
            table.notes.push(format!(
                "{entries} of {} {lead} to rows that are not in the table, which has all rows that the index counts: the index is damaged",
                statement.index, entries = plural(entries, "entry"), lead = verb_of(entries, "lead")));
            return;
        }
        // An index without entries is as empty as its table where both were emptied.
        if statement.entries == 0 {
            self.note_marked(table);
        }
        self.note_missing(statement, table);
        note_emptied(statement, table);
        note_items(statement, table);
        table.settle();
    }

    /// Puts into the account what an index without all rows says: of how many rows, what the other
    /// pages have tells better.
    fn note_partial(&self, statement: &Statement, table: &mut TableAccount) {
        let is_marked = self.note_marked(table);
        let missing = if is_marked {
            0
        } else {
            self.note_missing(statement, table)
        };
        let emptied = note_emptied(statement, table);
        // Of a table without any file all pages are lost already.
        if !self.file_is_missing(table) {
            table.pages.unread += missing + emptied;
        }
        note_items(statement, table);
        table.settle();
    }

    /// Tells blocks past the end, or of segments that are missing; how many.
    fn note_missing(&self, statement: &Statement, table: &mut TableAccount) -> u64 {
        let missing = statement.missing_blocks.ranges();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else {
            return 0;
        };
        let count = missing
            .iter()
            .map(|range| u64::from(range.end - range.start));
        let count = count.sum::<u64>();
        table.damaged_pages += count;
        let why = format!(
            "blocks {} to {} are missing: {} of {} {} there",
            first.start,
            last.end - 1,
            plural(statement.missing, "entry"),
            statement.index,
            verb_of(statement.missing, "lead")
        );
        if !self.file_is_missing(table) {
            table.places.push(LossPlace::page(first.start, why));
        }
        count
    }

    fn file_is_missing(&self, table: &TableAccount) -> bool {
        let files = self.files_of(table);
        files.is_some_and(|files| files.segments.is_empty() || self.is_remade(&files))
    }

    /// Recovery makes the file anew, without a row: those that the transaction wrote which made it
    /// are in no record where `wal_level` is `minimal`. They were in the file when it committed.
    fn is_remade(&self, files: &ForkFiles) -> bool {
        let number = files.number();
        let is_unlogged = |replay: &&Replay| {
            replay.creates(number)
                && replay.keeps_length(number)
                && replay.fate(number, Fork::Main, 0) == ReplayEffect::Kept
        };
        let source = self.as_it_lies.source().as_ref();
        !self.cluster.is_running()
            && self.replay.filter(is_unlogged).is_some()
            && Presence::of_file(source, &files.path(0)).is_missing()
    }

    fn files_of(&self, table: &TableAccount) -> Option<ForkFiles> {
        let relation = self.catalog.relations.get(&table.oid)?;
        Some(self.files.of(self.catalog, relation))
    }

    /// Every block on which rows are lost was marked as one whose rows all are seen: no deleted row
    /// is counted.
    pub(super) fn is_exact(&self, statement: &Statement, table: &TableAccount) -> bool {
        let is_live = self.options.rows == Rows::Live && self.replay.is_none();
        let Some(files) = self.files_of(table).filter(|_| is_live) else {
            return false;
        };
        let named = [&statement.missing_blocks, &statement.emptied_blocks];
        let named = named.into_iter().flat_map(BlockSet::blocks);
        let lacking = statement.lost_blocks.keys().copied();
        let blocks: Vec<BlockNo> = named
            .chain(lacking)
            .chain(table.pages.damaged.iter().copied())
            .take(MAP_LOOKS_MAX + 1)
            .collect();
        let is_seen = |block: &BlockNo| map_bits(self.cluster, &files, *block) & ALL_VISIBLE != 0;
        blocks.len() <= MAP_LOOKS_MAX && blocks.iter().all(is_seen)
    }

    /// Where no index tells: the visibility map marks no block behind the end, as it is cut with
    /// its table. Whether it named any.
    pub(super) fn note_marked(&self, table: &mut TableAccount) -> bool {
        // Of a table without any file all is lost already.
        let files = self.files_of(table);
        let Some(files) = files.filter(|files| !files.segments.is_empty() && self.keeps(files))
        else {
            return false;
        };
        let extent = Extent::of(table, &files, self.cluster);
        let is_kept = |block| self.is_kept(&files, block);
        let marked = self.cluster.marked_beyond(&files, extent.end, is_kept);
        let (Some(marked), Ok(first)) = (marked, BlockNo::try_from(extent.end)) else {
            return false;
        };
        let MarkedBeyond { last, lost, .. } = marked;
        table.pages.unread += lost;
        table.damaged_pages += lost;
        let why = format!(
            "blocks {first} to {last} are missing: the visibility map says that rows stood there"
        );
        table.places.push(LossPlace::page(first, why));
        true
    }

    /// Where neither index nor map tells: WAL from before the last checkpoint has records of pages
    /// that are all zeros, or behind the end.
    pub(super) fn note_logged(&self, table: &mut TableAccount) {
        let files = self.files_of(table);
        let Some(files) = files.filter(|files| !files.segments.is_empty()) else {
            return;
        };
        let source = self.cluster.source().as_ref();
        let is_empty = |block: &BlockNo| {
            let page = read_block(source, &files, self.cluster.build, *block);
            page.is_none_or(|page| Page::parse(&page).is_some_and(Page::is_zeroed))
        };
        let logged = self.as_it_lies.logged_blocks(&files).into_iter();
        let is_told = |block: &BlockNo| table.pages.damaged.contains(block);
        let lost = logged.filter(|block| !is_told(block) && is_empty(block));
        for block in lost.collect::<Vec<_>>() {
            let why = "the page holds nothing, and WAL has records of it";
            table.places.push(LossPlace::page(block, why));
            table.pages.unread += 1;
            table.damaged_pages += 1;
        }
    }

    /// Pages that lack what WAL has written to them: rows that they got are not there, and rows
    /// that they lost are.
    pub(super) fn note_outdated(&self, table: &mut TableAccount) {
        let Some(files) = self.files_of(table) else {
            return;
        };
        let is_told = |block: &BlockNo| table.pages.damaged.contains(block);
        let outdated = self.as_it_lies.outdated_blocks(&files).into_iter();
        let outdated = outdated.filter(|own| !is_told(&own.block));
        for own in outdated.collect::<Vec<_>>() {
            let why = format!(
                "the page is older than WAL, whose last record of its rows ends at {}",
                own.changed_at
            );
            table.places.push(LossPlace::page(own.block, why));
            table.damaged_pages += 1;
        }
    }

    /// No record of WAL that is applied in memory alone cuts or makes the file: its map as it lies
    /// there reaches as far as the file does.
    fn keeps(&self, files: &ForkFiles) -> bool {
        let keeps = |replay: &Replay| replay.keeps_length(files.number());
        self.replay.is_none_or(keeps)
    }

    /// No such record names the block, so that no bit of the map for it is of another moment.
    fn is_kept(&self, files: &ForkFiles, block: BlockNo) -> bool {
        let fate = |replay: &Replay| replay.fate(files.number(), Fork::Main, block);
        self.replay
            .is_none_or(|replay| fate(replay) == ReplayEffect::Kept)
    }

    /// What `pg_class` says of a table.
    pub(super) fn estimate(&self, table: &TableAccount) -> Estimate {
        let relation = self.catalog.relations.get(&table.oid);
        let files = self.files_of(table);
        let there = files.map_or(0, |files| files.bytes())
            / u64::from(self.cluster.build.block_size.max(1));
        relation.map_or(Estimate::default(), |relation| {
            let pages = u64::try_from(relation.relpages).unwrap_or(0);
            Estimate {
                pages,
                rows: relation.reltuples.unwrap_or(0),
                page_rows_max: page_rows_max(self.cluster.build.block_size),
                pages_short: if self.cluster.counts_own_pages() {
                    pages.saturating_sub(there)
                } else {
                    0
                },
            }
        })
    }

    /// Of a table that has no file at all, though it should: all its pages are lost, as many as
    /// there once were.
    pub(super) fn note_gone(&self, table: &mut TableAccount, witness: &Witness) {
        let is_gone = self.file_is_missing(table) && !matches!(witness, Witness::Unasked);
        if is_gone {
            table.pages.unread = self.estimate(table).pages.max(1);
            let path = self.files_of(table).map(|files| files.path(0));
            if let Some(path) = path.filter(|_| table.places.is_empty()) {
                let why = format!("the file {path} is missing");
                table.places.push(LossPlace::page(0, why));
            }
            table
                .notes
                .push("its file is missing: all its rows are lost".into());
        }
    }

    /// How many pages the table has is known: its file is as long as `pg_class` counts or longer,
    /// its visibility map is there, and nobody names a block past the end.
    pub(super) fn knows_end(&self, table: &TableAccount) -> bool {
        let Some(files) = self.files_of(table) else {
            return false;
        };
        let there = files.bytes() / u64::from(self.cluster.build.block_size);
        let counted = self.estimate(table).pages;
        let mut places = table.places.iter();
        let is_named = places.any(|place| !place.in_toast && u64::from(place.block) >= there);
        let is_counted = counted > 0 && counted <= there;
        is_counted && !is_named && !self.has_lost_map(table)
    }

    /// Recovery does not change how long the table is.
    pub(super) fn keeps_length(&self, table: &TableAccount) -> bool {
        let number = self.files_of(table).map(|files| files.number());
        let kept = self.replay.zip(number);
        kept.is_some_and(|(replay, number)| replay.keeps_length(number))
    }

    /// Its visibility map is gone, though `pg_class` knows one.
    pub(super) fn has_lost_map(&self, table: &TableAccount) -> bool {
        let relation = self.catalog.relations.get(&table.oid);
        let known = relation.zip(self.files_of(table));
        known.is_some_and(|(relation, files)| self.cluster.has_lost_map(relation, &files))
    }

    /// `pg_class` counts more pages than there are: so many, if it does. A crash empties an
    /// unlogged table, and leaves what it says of it.
    pub(super) fn pages_short(&self, table: &TableAccount) -> Option<(u64, u64)> {
        let files = self
            .files_of(table)
            .filter(|files| !files.segments.is_empty())?;
        let there = files.bytes() / u64::from(self.cluster.build.block_size);
        let counted = self.estimate(table).pages;
        let relation = self.catalog.relations.get(&table.oid);
        let is_unlogged = relation.is_some_and(|own| own.persistence == Persistence::Unlogged);
        (counted > there && !is_unlogged).then_some((counted, there))
    }
}

/// Rows without columns that a page has room for, `MaxHeapTuplesPerPage`.
pub(super) fn page_rows_max(block_size: u32) -> u64 {
    const ROW_BYTES: u64 = 28;
    u64::from(block_size).saturating_sub(HEADER_BYTES as u64) / ROW_BYTES
}

/// Tells that the file is another table's, so that all rows are lost and those that are written are
/// that one's.
fn note_foreign(statement: &Statement, other: &str, table: &mut TableAccount) {
    let (entries, index) = (statement.entries, &statement.index);
    let why = format!(
        "the file is a copy of that of {other}: the rows are those of {other}, and {entries} of {index} {lead} to rows that are lost",
        entries = plural(entries, "entry"),
        lead = verb_of(entries, "lead")
    );
    table.places.push(LossPlace::page(0, why));
    table.rows.uncertain += table.rows.written;
    table.settle();
}

/// A killed entry leads to a row that nobody needs.
fn is_killed(leaf: BtreePage<'_>, item: u16) -> bool {
    let pointer = leaf.page().line_pointer(item);
    pointer.is_none_or(|pointer| pointer.flags() == LpFlags::Dead)
}
