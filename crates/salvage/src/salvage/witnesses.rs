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

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_cluster::wal::{Replay, ReplayEffect};
use pgclinic_cluster::{
    BlockSet, Catalog, Cluster, Comparison, ForkFiles, Leaves, Persistence, Relation, each_leaf,
    each_row_named, fork_path,
};
use pgclinic_format::index_entries::names_rows;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::visibility_map::heap_blocks_per_page;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, LpFlags, Oid, Page};
use pgclinic_model::Progress;
use pgclinic_model::document::{Estimate, LossPlace, TableAccount};

use super::reading::{ALL_VISIBLE, map_bits};
use super::{Rows, SalvageOptions};
use crate::shape::MainForks;

/// Blocks past the end that are told apart; beyond them an entry is believed only as one of many.
const MISSING_MAX: BlockNo = 1 << 27;
/// Blocks whose bits in the visibility map are looked up one by one.
const MAP_LOOKS_MAX: usize = 4096;

/// What the indexes of one database share.
pub(super) struct Witnesses<'a> {
    pub(super) cluster: &'a Cluster,
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
    Earlier,
    /// Nobody is asked.
    Unasked,
}

/// Blocks behind the end of a table that its visibility map marks.
struct Marked {
    first: BlockNo,
    last: BlockNo,
    /// How many of them are missing.
    blocks: u64,
}

/// The indexes of a table.
#[derive(Default)]
struct Indexes<'a> {
    /// B-trees that have an entry for every row.
    full: Vec<(&'a Relation, ForkFiles)>,
    /// Others.
    partial: Vec<(&'a Relation, AccessMethod, ForkFiles)>,
}

/// What an index says.
#[derive(Default, Debug)]
pub(super) struct Statement {
    /// Its name, with its schema.
    pub(super) index: String,
    /// Entries that nobody killed.
    entries: u64,
    /// Those that lead past the end or into a missing segment, and the blocks.
    missing: u64,
    missing_blocks: BlockSet,
    /// Those that lead to pages without any row, and the pages.
    emptied: u64,
    emptied_blocks: BlockSet,
    /// Those that lead to damaged pages.
    damaged: u64,
    /// It is of before a recovery that changes table and index.
    pub(super) is_earlier: bool,
    /// Of such an index, more entries that may lead to lost rows: those on leaves that may be torn,
    /// and those that lead to pages which were made anew since, with rows of before or new ones.
    pub(super) doubtful: u64,
    /// Entries of an index that need not have all rows may be lost themselves.
    pub(super) is_hurt: bool,
}

/// Which blocks of a table are there, and on which of them rows may be lost.
struct Extent {
    /// Blocks up to the end of the last segment that is there.
    end: u64,
    /// Before the end: missing ones, those without rows, damaged ones. Together they are the
    /// suspects.
    holes: Vec<(u64, u64)>,
    vacant: BlockSet,
    damaged: BlockSet,
}

impl Extent {
    fn of(table: &TableAccount, files: &ForkFiles, cluster: &Cluster) -> Self {
        let page = u64::from(cluster.build.block_size);
        let whole = cluster.build.segment_blocks();
        let (mut end, mut holes) = (0, Vec::new());
        for segment in &files.segments {
            let first = u64::from(segment.number) * whole;
            if first > end {
                holes.push((end, first));
            }
            // A block that is cut is there as far as it goes.
            end = first + (segment.len.div_ceil(page)).min(whole);
        }
        let vacant = table.pages.vacant.iter();
        Extent {
            end,
            holes,
            vacant: vacant.flat_map(|(start, behind)| *start..*behind).collect(),
            damaged: table.pages.damaged.iter().copied().collect(),
        }
    }

    /// The same where recovery changes the table: of pages that it changes, an index of before it
    /// tells nothing.
    fn left_alone(mut self, replay: &Replay, file: FileNumber) -> Self {
        let is_kept = |block: &BlockNo| replay.fate(file, Fork::Main, *block) == ReplayEffect::Kept;
        self.vacant = self.vacant.blocks().filter(is_kept).collect();
        self.damaged = BlockSet::default();
        self
    }

    /// With the blocks that recovery begins as empty pages: of those that had content before, the
    /// first record brings it.
    fn with_refilled(mut self, replay: &Replay, file: FileNumber) -> Self {
        let is_begun = |block: &BlockNo| {
            replay.fate(file, Fork::Main, *block) == ReplayEffect::Rewritten
                && !replay.had_content(file, Fork::Main, *block)
        };
        let end = BlockNo::try_from(self.end).unwrap_or(BlockNo::MAX);
        let refilled = (0..end).filter(is_begun);
        self.vacant = self.vacant.blocks().chain(refilled).collect();
        self
    }

    #[inline]
    fn is_suspect(&self, block: BlockNo) -> bool {
        u64::from(block) >= self.end
            || self.vacant.holds(block)
            || self.damaged.holds(block)
            || self.is_in_hole(block)
    }

    fn is_in_hole(&self, block: BlockNo) -> bool {
        let block = u64::from(block);
        let mut holes = self.holes.iter();
        holes.any(|(start, end)| (*start..*end).contains(&block))
    }
}

impl Statement {
    fn take(&mut self, block: BlockNo, extent: &Extent) {
        if extent.vacant.holds(block) && !extent.damaged.holds(block) {
            self.emptied += 1;
            self.emptied_blocks.insert(block);
        } else if extent.damaged.holds(block) {
            self.damaged += 1;
        } else {
            self.missing += 1;
            let end = BlockNo::try_from(extent.end).unwrap_or(BlockNo::MAX);
            if block < end.saturating_add(MISSING_MAX) {
                self.missing_blocks.insert(block);
            }
        }
    }

    /// Rows that it does not name: those that live, and one entry leads to each of them.
    fn unseen_rows(&self, table: &TableAccount) -> u64 {
        let there = table.rows.live + table.rows.carved;
        self.entries.saturating_sub(there)
    }

    /// Entries lead past the end of a table that has all rows which the index counts: a number in
    /// the index is wrong.
    fn contradicts_itself(&self, table: &TableAccount) -> bool {
        !self.is_earlier
            && self.missing > 0
            && self.emptied == 0
            && table.pages.damaged.is_empty()
            && self.unseen_rows(table) == 0
    }

    /// Rows that are lost, at most.
    pub(super) fn rows(&self, table: &TableAccount) -> u64 {
        let damaged = self.damaged.saturating_sub(table.pages.found_on_damaged);
        let claimed = self.missing + self.emptied + damaged;
        if self.is_earlier {
            // Rows that came since are not in it.
            claimed
        } else {
            claimed.min(self.unseen_rows(table))
        }
    }
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
        let mut broken = None;
        let full = indexes.full.iter();
        for (index, own) in full.filter(|(_, files)| !is_later(files)) {
            let (statement, is_whole) = self.hear(index, own, &extent);
            let is_one_moment = !self.not_applied.contains_key(&own.number());
            if is_whole && is_one_moment && self.counts_enough(&statement, table) {
                return Witness::Whole(statement);
            }
            broken = Some(statement);
            if self.progress.is_interrupted() {
                break;
            }
        }
        match broken {
            Some(statement) => Witness::Broken(statement),
            None if indexes.full.is_empty() => {
                let partial = indexes.partial.iter();
                let heard = partial
                    .filter(|(_, _, files)| !is_later(files))
                    .map(|index| self.hear_partial(relation, index, &extent));
                // One that misses rows says more than one that is hurt.
                let most = heard.max_by_key(|own| (own.missing + own.emptied, own.is_hurt));
                let is_needed = |own: &Statement| own.missing + own.emptied > 0 || own.is_hurt;
                let most = most.filter(is_needed);
                most.map_or(Witness::Absent, Witness::Partial)
            }
            None => self.earlier(&files, &indexes.full, extent),
        }
    }

    /// Entries of an index that lead to what is not there, and whether it is whole. Pages of
    /// a GIN index that nothing leads to any more may name rows of long ago: they count only where
    /// `pg_class` counts their blocks too.
    fn hear_partial(
        &self,
        table: &Relation,
        (index, method, files): &(&Relation, AccessMethod, ForkFiles),
        extent: &Extent,
    ) -> Statement {
        let counted = u64::try_from(table.relpages).unwrap_or(0);
        let is_known = |block: BlockNo| *method != AccessMethod::Gin || u64::from(block) < counted;
        let mut statement = Statement {
            index: index.qualified_name(),
            ..Statement::default()
        };
        let silent = each_row_named(self.cluster, files, *method, &mut |tid| {
            let is_lost = extent.is_suspect(tid.block)
                && is_known(tid.block)
                && self.options.selection.takes_block(tid.block.into());
            if is_lost {
                statement.take(tid.block, extent);
            }
            !self.progress.is_interrupted()
        });
        // No VACUUM truncates an index. A page of zeros may be one that a crash left behind: it
        // counts where rows may have stood that it would name.
        let blocks = files.bytes() / u64::from(self.cluster.build.block_size);
        let is_short = i64::try_from(blocks).is_ok_and(|blocks| blocks < index.relpages.into());
        let is_emptied = silent.zeroed > 0 && extent.vacant.blocks().next().is_some();
        statement.is_hurt =
            files.segments.is_empty() || is_short || silent.broken > 0 || is_emptied;
        statement
    }

    /// Indexes as they lie there, before a recovery that changes them and their table. What their
    /// entries lead to was there when they were written, and stays until VACUUM removes the entry
    /// and then cuts the table: where recovery does not cut it, a block past its end is lost, and
    /// so is what stood on a page of zeros that recovery leaves alone. A page of an index that was
    /// being written when the server went down may be torn and would name anything: only its
    /// checksum makes it a witness, or that recovery leaves it alone, as then nobody had changed it
    /// since the checkpoint.
    fn earlier(
        &self,
        table: &ForkFiles,
        indexes: &[(&Relation, ForkFiles)],
        extent: Extent,
    ) -> Witness {
        let Some(replay) = self.replay else {
            return Witness::Earlier;
        };
        let keeps = |files: &ForkFiles| replay.keeps_length(files.number());
        let index = indexes.iter().find(|(_, files)| keeps(files));
        let Some((index, files)) = index.filter(|_| keeps(table)) else {
            return Witness::Earlier;
        };
        let extent = extent.left_alone(replay, table.number());
        let has_checksums = self.cluster.checksums() == Some(true);
        let is_sound = |block: BlockNo| {
            has_checksums || replay.fate(files.number(), Fork::Main, block) == ReplayEffect::Kept
        };
        let (mut statement, _) = self.hear_leaves(index, files, &extent, &is_sound);
        statement.is_earlier = true;
        if statement.missing + statement.emptied == 0 {
            return Witness::Earlier;
        }
        let claimed = statement.missing + statement.emptied;
        let extent = extent.with_refilled(replay, table.number());
        let (all, _) = self.hear(index, files, &extent);
        statement.doubtful = (all.missing + all.emptied).saturating_sub(claimed);
        Witness::Broken(statement)
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

    fn takes_all_blocks(&self) -> bool {
        self.options.selection.blocks.is_none()
    }

    /// What an index says, and whether all of it was there.
    fn hear(&self, index: &Relation, files: &ForkFiles, extent: &Extent) -> (Statement, bool) {
        self.hear_leaves(index, files, extent, &|_| true)
    }

    /// The same of the leaves in the blocks that `counts` takes.
    fn hear_leaves(
        &self,
        index: &Relation,
        files: &ForkFiles,
        extent: &Extent,
        counts: &dyn Fn(BlockNo) -> bool,
    ) -> (Statement, bool) {
        let mut statement = Statement {
            index: index.qualified_name(),
            ..Statement::default()
        };
        let selection = &self.options.selection;
        let seen = each_leaf(self.cluster, files, Leaves::Sound, &mut |block, leaf| {
            let leaves = counts(block).then(|| leaf.data());
            for (item, tuple) in leaves.into_iter().flatten() {
                // A killed entry leads to a row that nobody needs.
                let pointer = leaf.page().line_pointer(item);
                if pointer.is_none_or(|pointer| pointer.flags() == LpFlags::Dead) {
                    continue;
                }
                for tid in tuple.rows() {
                    statement.entries += 1;
                    if extent.is_suspect(tid.block) && selection.takes_block(tid.block.into()) {
                        statement.take(tid.block, extent);
                    }
                }
            }
            !self.progress.is_interrupted()
        });
        (statement, seen.is_whole())
    }

    /// Puts into the account of a table what the witness says of its pages.
    pub(super) fn note(&self, witness: &Witness, table: &mut TableAccount) {
        let (statement, is_whole) = match witness {
            Witness::Whole(statement) => (statement, true),
            Witness::Broken(statement) => (statement, false),
            Witness::Partial(statement) => return self.note_partial(statement, table),
            Witness::Absent | Witness::Earlier | Witness::Unasked => return,
        };
        if is_whole {
            table.witness = Some(statement.index.clone());
        }
        if statement.contradicts_itself(table) {
            let entries = statement.missing;
            table.notes.push(format!(
                "{entries} entries of {} lead past the end of the table, which has all rows that the index counts: the index is damaged",
                statement.index
            ));
            return;
        }
        self.note_missing(statement, table);
        note_emptied(statement, table);
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
            "blocks {} to {} are missing: {} entries of {} lead there",
            first.start,
            last.end - 1,
            statement.missing,
            statement.index
        );
        if !self.file_is_missing(table) {
            table.places.push(LossPlace::page(first.start, why));
        }
        count
    }

    fn file_is_missing(&self, table: &TableAccount) -> bool {
        let files = self.files_of(table);
        files.is_some_and(|files| files.segments.is_empty())
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
        let blocks: Vec<BlockNo> = named
            .chain(table.pages.damaged.iter().copied())
            .take(MAP_LOOKS_MAX + 1)
            .collect();
        let is_seen = |block: &BlockNo| {
            let bits = map_bits(self.cluster, &files, *block);
            bits.is_some_and(|bits| bits & ALL_VISIBLE != 0)
        };
        blocks.len() <= MAP_LOOKS_MAX && blocks.iter().all(is_seen)
    }

    /// Where no index tells: the visibility map marks no block behind the end, as it is cut with
    /// its table. Whether it told any.
    pub(super) fn note_marked(&self, table: &mut TableAccount) -> bool {
        // Of a table without any file all is lost already.
        let files = self.files_of(table);
        let Some(files) = files.filter(|files| !files.segments.is_empty() && self.keeps(files))
        else {
            return false;
        };
        let extent = Extent::of(table, &files, self.cluster);
        let Some(marked) = self.marked_from(&files, extent.end) else {
            return false;
        };
        let Marked {
            first,
            last,
            blocks,
        } = marked;
        table.pages.unread += blocks;
        table.damaged_pages += blocks;
        let why = format!(
            "blocks {first} to {last} are missing: the visibility map says that rows stood there"
        );
        table.places.push(LossPlace::page(first, why));
        true
    }

    /// No record of WAL that is applied in memory alone cuts or makes the file: its map as it lies
    /// there reaches as far as the file does.
    fn keeps(&self, files: &ForkFiles) -> bool {
        let keeps = |replay: &Replay| replay.keeps_length(files.number());
        self.replay.is_none_or(keeps)
    }

    /// No such record names the block, so that no bit of the map for it is of another moment.
    fn is_kept(&self, files: &ForkFiles, block: u64) -> bool {
        let block = BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
        let fate = |replay: &Replay| replay.fate(files.number(), Fork::Main, block);
        self.replay
            .is_none_or(|replay| fate(replay) == ReplayEffect::Kept)
    }

    /// What sound pages of the map mark from the end of the table on.
    fn marked_from(&self, files: &ForkFiles, end: u64) -> Option<Marked> {
        let page_bytes = u64::from(self.cluster.build.block_size);
        let per_page = heap_blocks_per_page(usize::try_from(page_bytes).ok()?);
        let path = fork_path(&files.home.folder, files.filenode, Fork::Vm, 0);
        let len = self.cluster.source().len(&path).ok()?;
        let mut marked: Option<(u64, u64)> = None;
        let mut bytes = vec![0; usize::try_from(page_bytes).ok()?];
        for number in end / per_page..len / page_bytes {
            let at = number * page_bytes;
            let read = self.cluster.source().read_at(&path, at, &mut bytes);
            if read != Ok(bytes.len()) {
                break;
            }
            let page = Page::parse(&bytes);
            let block = BlockNo::try_from(number).ok()?;
            if !page.is_some_and(|page| self.cluster.page_is_sound(page, block)) {
                continue;
            }
            let bits = bytes.get(HEADER_BYTES..).unwrap_or_default();
            for (byte, block) in bits.iter().zip((number * per_page..).step_by(4)) {
                let places = (0..4).filter(|place| byte >> (place * 2) & 3 != 0);
                let blocks = places.map(|place| block + place);
                for block in blocks.filter(|block| *block >= end && self.is_kept(files, *block)) {
                    let count = marked.map_or(0, |(_, count)| count);
                    marked = Some((block, count + 1));
                }
            }
        }
        let (last, count) = marked?;
        let missing = last + 1 - end;
        Some(Marked {
            first: BlockNo::try_from(end).ok()?,
            last: BlockNo::try_from(last).ok()?,
            // A map marks most blocks of a table, or a single bit of it is wrong.
            blocks: if count * 2 >= missing { missing } else { count },
        })
    }

    /// What `pg_class` says of a table.
    pub(super) fn estimate(&self, table: &TableAccount) -> Estimate {
        let relation = self.catalog.relations.get(&table.oid);
        relation.map_or(Estimate::default(), |relation| Estimate {
            pages: u64::try_from(relation.relpages).unwrap_or(0),
            rows: relation.reltuples.unwrap_or(0),
            page_rows_max: page_rows_max(self.cluster.build.block_size),
        })
    }

    /// Of a table that has no file at all, though it should: all its pages are lost, as many as
    /// there once were.
    pub(super) fn note_gone(&self, table: &mut TableAccount, witness: &Witness) {
        let is_gone = self.file_is_missing(table) && !matches!(witness, Witness::Unasked);
        if is_gone {
            table.pages.unread = self.estimate(table).pages.max(1);
            table
                .notes
                .push("its file is missing: all its rows are lost".into());
        }
    }

    /// `pg_class` counts more pages than there are: so many, if it does.
    pub(super) fn pages_short(&self, table: &TableAccount) -> Option<(u64, u64)> {
        let files = self
            .files_of(table)
            .filter(|files| !files.segments.is_empty())?;
        let there = files.bytes() / u64::from(self.cluster.build.block_size);
        let counted = self.estimate(table).pages;
        (counted > there).then_some((counted, there))
    }
}

/// Rows without columns that a page has room for, `MaxHeapTuplesPerPage`.
pub(super) fn page_rows_max(block_size: u32) -> u64 {
    const ROW_BYTES: u64 = 28;
    u64::from(block_size).saturating_sub(HEADER_BYTES as u64) / ROW_BYTES
}

/// Tells pages without rows to which entries lead; how many.
fn note_emptied(statement: &Statement, table: &mut TableAccount) -> u64 {
    let (index, mut count) = (&statement.index, 0);
    for range in statement.emptied_blocks.ranges() {
        count += u64::from(range.end - range.start);
        let (first, last) = (range.start, range.end - 1);
        let why = if first == last {
            format!("the page holds nothing, and entries of {index} lead to rows on it")
        } else {
            format!(
                "the pages up to block {last} hold nothing, and entries of {index} lead to rows on them"
            )
        };
        table.places.push(LossPlace::page(first, why));
    }
    table.damaged_pages += count;
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_model::document::RowCounts;

    fn table(live: u64) -> TableAccount {
        TableAccount {
            rows: RowCounts {
                live,
                ..RowCounts::default()
            },
            ..TableAccount::default()
        }
    }

    #[test]
    fn entries_count_no_more_rows_than_are_unseen() {
        // Entries, those past the end, those to emptied pages, rows that live; rows that are lost,
        // and whether the index is wrong.
        let cases = [
            ((1000, 200, 0, 800), (200, false)),
            ((1000, 0, 200, 800), (200, false)),
            // Old versions have entries too.
            ((1500, 0, 200, 900), (200, false)),
            ((1500, 0, 200, 1400), (100, false)),
            // All rows are there: one entry has a wrong number.
            ((1000, 1, 0, 1000), (0, true)),
            // A page of zeros that entries lead to was a page, whatever else is there twice.
            ((1000, 0, 50, 1000), (0, false)),
        ];
        for ((entries, missing, emptied, live), expected) in cases {
            let statement = Statement {
                entries,
                missing,
                emptied,
                ..Statement::default()
            };
            let table = table(live);
            let found = (statement.rows(&table), statement.contradicts_itself(&table));
            assert_eq!(found, expected, "{statement:?}");
        }
    }

    #[test]
    fn suspects_are_what_is_not_there_and_what_holds_nothing() {
        let extent = Extent {
            end: 300,
            holes: vec![(100, 200)],
            vacant: [7].into_iter().collect(),
            damaged: [8].into_iter().collect(),
        };
        let suspects = [7, 8, 100, 199, 300, BlockNo::MAX];
        assert!(suspects.iter().all(|block| extent.is_suspect(*block)));
        assert!(
            ![0, 6, 9, 99, 200, 299]
                .iter()
                .any(|block| extent.is_suspect(*block))
        );
    }
}
