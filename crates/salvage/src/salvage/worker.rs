//! One thread: finds the rows of the pages that it is given, and prints those that are wanted.

use pgclinic_cluster::{
    ChunkDoubts, Comparison, RowState, Stamp, ToastReader, Visibility, read_block,
};
use pgclinic_format::datum::Limits;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::toast_chunk::PlainChunk;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, HeapTuple, LpFlags, Page, Xid};
use pgclinic_model::document::{LossPlace, Tally};

use super::Rows;
use super::coverage::{Coverage, Covered, says_elsewhere};
use super::database_job::{DatabaseJob, TableWork};
use super::large_row::{LargeRow, LostValues};
use super::large_value;
use super::ordered_files::Piece;
use super::pass::Gathering;
use super::reading::{ALL_VISIBLE, HELD_ROWS, look, map_bits, map_marks};
use super::roots::sum_of_roots;
use super::suspects::suspect_row;
use super::toast_values::note_pointers;
use crate::carve::{self, Found, PageState, Probe, Realigned};
use crate::readable::Readable;
use crate::shape::{Column, Table};
use crate::texts::Texts;
use crate::values::{
    Fault, Partial, RowValues, Taking, chunk_rows, needed_by_row, rank, writes_all,
};
use crate::visible::VersionFate;

/// Bytes of text that a thread gathers before it writes them, if its turn has come.
const AHEAD_BYTES: usize = 4 << 20;

/// Of a row with such a value.
const LEFT_OVER: &str = "TOAST holds more of a value than the row's pointer says";
const DOUBTED_TOAST: &str = "a value of the row stands on a damaged page of the TOAST table";

/// Of a row that does not count, on a page whose rows all do.
const DENIED_BY_MAP: &str =
    "by its header no transaction sees the row, and by the visibility map every transaction does";

/// Of a page, and of the rows on it.
const OLDER_THAN_MAP: &str = "the visibility map says that every transaction sees all rows of the page, and the page does not: it may be an older copy, or the map is wrong; its rows were taken as they are";

/// What may stand in front of a value's text.
const PREFIX_BYTES: u64 = 64;

pub(super) struct Worker<'c> {
    crew: &'c DatabaseJob<'c>,
    visibility: Visibility<'c>,
    /// The row that was judged last.
    judged: Option<(Stamp, Judgement)>,
    /// There is a commit log.
    has_log: bool,
    /// A visibility map tells of the rows as they are.
    compares_map: bool,
    cells: RowValues,
    bench: Option<Bench<'c>>,
}

/// What became of a row, and why it may not be what it says.
type Judgement = (RowState, Option<&'static str>);

/// What is made for a table and used for all its pieces.
struct Bench<'c> {
    table: usize,
    texts: Texts,
    readable: Readable,
    chunks: Option<ToastReader<'c>>,
    /// The page of its visibility map that was asked last, by its number.
    map_page: Option<(BlockNo, Option<Vec<u8>>)>,
    /// As [`writes_all`] says of the table.
    writes_all: bool,
}

/// A piece of a table that is being printed.
pub(super) struct Printing<'c> {
    pub(super) table: usize,
    pub(super) work: &'c TableWork,
    pub(super) piece: u64,
    pub(super) out: Piece,
    /// Where in the rows of `out` the row at hand begins.
    pub(super) row_start: usize,
    pub(super) tally: Tally,
}

/// A page or a row, and where the bytes of it end that are known.
#[derive(Clone, Copy)]
struct Part<T> {
    of: T,
    known_bytes: usize,
}

impl<T> Part<T> {
    fn all_of(of: T) -> Self {
        let known_bytes = usize::MAX;
        Part { of, known_bytes }
    }
}

impl<'c> Worker<'c> {
    pub(super) fn new(crew: &'c DatabaseJob<'c>) -> Self {
        Worker {
            visibility: Visibility::new(crew.cluster),
            crew,
            judged: None,
            has_log: !crew.cluster.transactions.is_absent(),
            compares_map: crew.cluster.may_compare(Comparison::ForksOfRelation),
            cells: RowValues::default(),
            bench: None,
        }
    }

    /// Finds the chunks of a page of a TOAST relation.
    pub(super) fn gather_page(
        &self,
        page: Page<'_>,
        block: BlockNo,
        gathering: &mut Gathering<'_>,
    ) {
        let (state, why) = look(self.crew.cluster, page, block);
        if why.is_some() {
            gathering.doubt(block);
        }
        let Gathering {
            gatherer, tally, ..
        } = gathering;
        tally.pages_beyond_wal += u64::from(why.is_none() && self.crew.is_beyond_wal(page));
        if let Some(why) = why {
            tally.damaged_pages += 1;
            tally.lose(LossPlace {
                in_toast: true,
                ..LossPlace::page(block, why)
            });
        }
        tally.changed_pages += u64::from(self.crew.is_later(page));
        if state == PageState::Empty {
            return;
        }
        for (item, tuple) in chunk_rows(page, block, 1, &self.crew.cluster.transactions) {
            if let Some(chunk) = PlainChunk::parse(tuple) {
                let place = Tid {
                    block,
                    offset: item,
                };
                let verdict = VersionFate::of(&self.visibility, tuple, place);
                let is_first = chunk.seq == 0 && verdict == VersionFate::Live;
                tally.pages.toast_values += u64::from(is_first && state == PageState::Sound);
                gatherer.push(chunk, block, item, rank(verdict));
            }
        }
    }

    /// Makes what all pieces of a table use; waits for the index of its TOAST values.
    pub(super) fn set_up(&mut self, table: usize, work: &'c TableWork) {
        if self
            .bench
            .as_ref()
            .is_some_and(|bench| bench.table == table)
        {
            return;
        }
        let crew = self.crew;
        // What a table says of its oldest transaction tells of its own rows.
        self.judged = None;
        let limits = Limits {
            major: crew.cluster.layout.major,
            // Of bytea each byte is two digits.
            output_bytes: usize::try_from(2 * crew.value_bytes_max() + PREFIX_BYTES)
                .unwrap_or(usize::MAX),
            ..Limits::default()
        };
        let chunks = work.toast.as_ref().and_then(|toast| {
            let (_, files) = work.table.toast.as_ref()?;
            let index = toast.index();
            let reader = ToastReader::new(crew.cluster, files, index, chunk_rows);
            Some(reader.doubting(toast.doubted()))
        });
        self.bench = Some(Bench {
            table,
            texts: Texts::new(&work.table.columns, limits, crew.charset, &crew.style),
            readable: Readable::new(&work.table, limits, crew.charset),
            chunks,
            map_page: None,
            writes_all: writes_all(&work.table),
        });
    }

    pub(super) fn print_page(
        &mut self,
        page: Page<'_>,
        block: BlockNo,
        printing: &mut Printing<'c>,
    ) {
        let (counted, found) = (printing.tally.counted, printing.tally.rows.found);
        let state = self.print_rows(page, block, printing);
        let files = &printing.work.table.files;
        match self.crew.maps.owner(page.pd_lsn()) {
            Some(own) if own == (files.home.tablespace, files.filenode) => {
                printing.tally.pages.has_own_map = true;
            }
            Some(other) => printing.tally.pages.other_map = Some(other),
            None => {}
        }
        let is_barren = printing.tally.rows.found == found;
        let Tally {
            pages,
            counted: now,
            ..
        } = &mut printing.tally;
        let rows = *now - counted;
        if page.line_pointer_count() == 0 && !state.is_carved() {
            pages.note_vacant(block);
        }
        if pages.damaged.last() == Some(&block) {
            pages.found_on_damaged += rows;
        }
        if state == PageState::Sound {
            pages.note_roots(block, sum_of_roots(page, block));
        }
        match state {
            PageState::Broken => {
                pages.unread += 1;
                pages.found_on_unread += rows;
            }
            PageState::Sound if rows > 0 => {
                pages.row_pages += 1;
                pages.page_rows += rows;
            }
            // What was found there is all that stood there.
            PageState::Emptied => pages.unread += u64::from(is_barren),
            PageState::Sound | PageState::Empty => {}
        }
    }

    /// The rows of a page; what it is.
    fn print_rows(
        &mut self,
        page: Page<'_>,
        block: BlockNo,
        printing: &mut Printing<'c>,
    ) -> PageState {
        let (state, why) = look(self.crew.cluster, page, block);
        printing.tally.pages_beyond_wal +=
            u64::from(why.is_none() && self.crew.is_beyond_wal(page));
        let is_denied = why.is_none() && state == PageState::Sound;
        let is_denied = is_denied && self.map_denies(page, block, &printing.work.table);
        let why = why.or(is_denied.then_some(OLDER_THAN_MAP));
        if let Some(why) = why {
            printing.tally.damaged_pages += 1;
            printing.tally.doubt_block(block);
            printing.tally.lose(LossPlace::page(block, why));
        }
        printing.tally.changed_pages += u64::from(self.crew.is_later(page));
        match state {
            PageState::Empty => self.note_empty(block, printing),
            PageState::Broken => {
                let moved = self.realigned(page, block, printing);
                let known_bytes = moved.as_ref().map(|moved| moved.known_bytes);
                let moved = moved.as_ref().and_then(|moved| Page::parse(&moved.bytes));
                let page = Part {
                    of: moved.unwrap_or(page),
                    known_bytes: known_bytes.unwrap_or(usize::MAX),
                };
                self.print_carved(page, block, printing, carve::of_broken_page);
            }
            PageState::Emptied => {
                let page = Part::all_of(page);
                self.print_carved(page, block, printing, carve::of_broken_page);
            }
            PageState::Sound => {
                let covered = self.print_named((page, why), block, printing);
                if covered.rejected > 0 || !covered.is_whole {
                    printing.tally.doubt_block(block);
                }
                let (mut missed, mut found) = (covered.rejected, 0);
                if !covered.is_whole {
                    missed += page.line_pointers_cut_off().len() as u64;
                    let page = Part::all_of(page);
                    found = self.print_carved(page, block, printing, carve::of_gaps);
                }
                printing.tally.rows.lost += missed.saturating_sub(found);
            }
        }
        state
    }

    /// The visibility map marks the page, which says of itself that it is not all visible: whoever
    /// clears the one clears the other.
    fn map_denies(&mut self, page: Page<'_>, block: BlockNo, table: &Table) -> bool {
        let is_marked = page.pd_flags() & PD_ALL_VISIBLE != 0;
        let Some(bench) = self
            .bench
            .as_mut()
            .filter(|_| self.compares_map && !is_marked)
        else {
            return false;
        };
        let cluster = self.crew.cluster;
        let number = cluster.map_page_number(block);
        if bench.map_page.as_ref().is_none_or(|own| own.0 != number) {
            bench.map_page = Some((number, cluster.map_page_of(&table.files, number)));
        }
        let map_page = bench.map_page.as_ref().and_then(|own| own.1.as_deref());
        map_page.is_some_and(|own| cluster.map_bits_in(own, block) & ALL_VISIBLE != 0)
    }

    /// The rows that the line pointers of a sound page name.
    fn print_named(
        &mut self,
        (page, why): (Page<'_>, Option<&'static str>),
        block: BlockNo,
        printing: &mut Printing<'c>,
    ) -> Covered {
        let all_visible =
            page.pd_flags() & PD_ALL_VISIBLE != 0 && self.visibility.trusts_all_visible();
        let cluster = self.crew.cluster;
        let read = |other| {
            let files = &printing.work.table.files;
            read_block(cluster.source().as_ref(), files, cluster.build, other)
        };
        let misplaced = says_elsewhere(page, block, read);
        if let Some((rows, why)) = &misplaced {
            printing.tally.rows.uncertain += rows;
            printing.tally.doubt_block(block);
            printing.tally.lose(LossPlace::page(block, why.clone()));
        }
        let misplaced = misplaced.map(|(_, why)| why);
        let (mut covered, mut marked) = (Coverage::default(), None);
        let (mut is_against_status, mut is_first) = (false, true);
        for (item, pointer) in page.line_pointers() {
            // Dead ones have no row since 8.3.
            if pointer.flags() != LpFlags::Normal {
                continue;
            }
            let place = Tid {
                block,
                offset: item,
            };
            let layouts = &printing.work.table.layouts;
            let row = page.item(pointer).and_then(HeapTuple::parse);
            let Some(tuple) = row.filter(|tuple| carve::is_row(*tuple, layouts)) else {
                let why = "the line pointer names bytes that are no row";
                printing.tally.lose(LossPlace::row(place, why));
                covered.rejected += 1;
                continue;
            };
            if !covered.take(pointer) {
                let why = "another line pointer names the same row";
                printing.tally.lose(LossPlace::row(place, why));
                covered.rejected += 1;
                continue;
            }
            // Of an all-visible page one row bears witness: all would cost what the mark saves.
            if is_first || (!all_visible && !is_against_status) {
                is_against_status = self.visibility.status_denies_insertion(tuple);
                is_first = false;
            }
            let (state, doubt) = if all_visible {
                (RowState::Visible, None)
            } else {
                self.judge(tuple, printing.work.table.relfrozenxid)
            };
            let verdict = VersionFate::of_state(state, tuple, place);
            let is_dead = matches!(verdict, VersionFate::Deleted | VersionFate::Aborted);
            if !is_dead {
                let table = &printing.work.table;
                note_pointers(tuple, table, &mut printing.tally.pages);
            }
            let mut is_marked = || {
                let files = &printing.work.table.files;
                let bits = || map_bits(cluster, files, block) & ALL_VISIBLE;
                *marked.get_or_insert_with(|| self.compares_map && bits() != 0)
            };
            let is_denied = doubt.is_none() && is_dead && is_marked();
            let doubt = doubt.or(is_denied.then_some(DENIED_BY_MAP));
            let is_too_old = printing.work.table.is_before_freeze(tuple);
            printing.tally.rows_before_freeze += u64::from(is_too_old);
            if let Some(why) = doubt {
                let rows = &mut printing.tally.rows;
                if verdict.counts() {
                    rows.uncertain += 1
                } else {
                    rows.withheld += 1
                }
                printing.tally.tell_row(place, why);
            }
            let doubts = [doubt, why, misplaced.as_deref()];
            let row = Part::all_of(tuple);
            self.print_row(row, (place, verdict), doubts, printing);
        }
        printing.tally.pages_against_status += u64::from(is_against_status);
        Covered {
            is_whole: carve::is_covered(page, covered.bytes),
            rejected: covered.rejected,
        }
    }

    /// Rows that say the same of their transactions are judged alike.
    #[inline]
    fn judge(&mut self, tuple: HeapTuple<'_>, relfrozenxid: Xid) -> Judgement {
        let stamp = Stamp::of(tuple);
        if let Some((_, judgement)) = self.judged.filter(|(known, _)| *known == stamp) {
            return judgement;
        }
        let visibility = &self.visibility;
        let judgement = match visibility.impossible_move(tuple, relfrozenxid) {
            Some(why) => (visibility.state_unmoved(tuple), Some(why)),
            None => {
                let why = visibility.contradiction(tuple);
                let why = why.or_else(|| visibility.impossible_updater(tuple, relfrozenxid));
                (visibility.state(tuple), why)
            }
        };
        self.judged = Some((stamp, judgement));
        judgement
    }

    /// The page as it was before its content was moved, if it was.
    fn realigned(
        &mut self,
        page: Page<'_>,
        block: BlockNo,
        printing: &mut Printing<'c>,
    ) -> Option<Realigned> {
        let readable = &mut self.bench.as_mut()?.readable;
        let mut fits = |attribute: usize, value: &[u8]| readable.fits(attribute, value);
        let log = &self.crew.cluster.transactions;
        let work = printing.work;
        let probe = Probe::new(&work.table.layouts, work.blocks, log, &mut fits);
        let realigned = carve::realigned(page, block, &probe)?;
        let moved = realigned.moved;
        let why = format!(
            "the content of the page was moved by {moved} bytes: it was read where it stood"
        );
        printing.tally.lose(LossPlace::page(block, why));
        Some(realigned)
    }

    /// Rows that are found by their structure; how many.
    fn print_carved<'p>(
        &mut self,
        Part {
            of: page,
            known_bytes,
        }: Part<Page<'p>>,
        block: BlockNo,
        printing: &mut Printing<'c>,
        find: for<'f> fn(Page<'p>, BlockNo, &mut Probe<'f>) -> Vec<Found<'p>>,
    ) -> u64 {
        let Some(bench) = &mut self.bench else {
            return 0;
        };
        let readable = &mut bench.readable;
        let mut fits = |attribute: usize, value: &[u8]| readable.fits(attribute, value);
        let log = &self.crew.cluster.transactions;
        let blocks = printing.work.blocks;
        let mut probe = Probe::new(&printing.work.table.layouts, blocks, log, &mut fits);
        let found = find(page, block, &mut probe);
        let count = found.len() as u64;
        for Found { tuple, at, place } in found {
            let verdict = match VersionFate::of(&self.visibility, tuple, place) {
                verdict if verdict.counts() => VersionFate::Carved,
                verdict => verdict,
            };
            note_pointers(tuple, &printing.work.table, &mut printing.tally.pages);
            let is_told = verdict == VersionFate::Carved;
            let doubt = words_of(VersionFate::Carved).filter(|_| !is_told);
            let row = Part {
                of: tuple,
                known_bytes: known_bytes.saturating_sub(at),
            };
            self.print_row(row, (place, verdict), [doubt, None, None], printing);
        }
        count
    }

    /// A page of zeros is legal, unless the visibility map says that it held rows.
    fn note_empty(&self, block: BlockNo, printing: &mut Printing<'c>) {
        printing.tally.empty_pages += 1;
        if map_marks(self.crew.cluster, &printing.work.table, block) {
            printing.tally.damaged_pages += 1;
            printing.tally.pages.unread += 1;
            printing.tally.doubt_block(block);
            printing.tally.lose(LossPlace::page(block, HELD_ROWS));
        }
    }

    fn print_row(
        &mut self,
        Part {
            of: tuple,
            known_bytes,
        }: Part<HeapTuple<'_>>,
        (place, verdict): (Tid, VersionFate),
        doubts: [Option<&str>; 3],
        printing: &mut Printing<'c>,
    ) {
        let crew = self.crew;
        count(verdict, &mut printing.tally);
        if let Some(why) = words_of(verdict) {
            printing.tally.tell_row(place, why);
        }
        let wanted = crew.options.rows == Rows::All || verdict.counts();
        printing.tally.counted += u64::from(verdict.counts());
        printing.tally.rows.found += 1;
        printing.tally.rows.skipped += u64::from(!wanted);
        let Some(bench) = self.bench.as_mut().filter(|_| wanted) else {
            return;
        };
        let large = crew.large_row_bytes();
        let is_large = needed_by_row(tuple, &printing.work.table.layouts) > large;
        // One thread at a time holds a large row; it has its turn to write, so that none of them
        // waits for another.
        let _alone = is_large.then(|| {
            let (table, piece) = (printing.table, printing.piece);
            crew.outlet.write_ahead(table, piece, &mut printing.out);
            crew.alone()
        });
        let columns = &printing.work.table.columns;
        // What large values of the row before met is not this one's.
        take_doubts(bench.chunks.as_mut());
        let mut taking = Taking {
            table: &printing.work.table,
            chunks: bench.chunks.as_mut(),
            partial: crew.options.partial,
            chunk_bytes: crew.cluster.build.toast_chunk,
            value_bytes_max: crew.value_bytes_max(),
            writes_all: bench.writes_all,
            known_bytes,
        };
        self.cells.fill(tuple, place, verdict, &mut taking);
        let mut faults = self.cells.faults().iter();
        let torn = faults.find(|fault| fault.kind.tears_row());
        if let Some(fault) = torn.filter(|_| crew.outlet.is_server()) {
            withhold_torn(fault, columns, place, &mut printing.tally);
            return;
        }
        let met = take_doubts(bench.chunks.as_mut());
        let of_toast = met.on_doubted_page.then_some(DOUBTED_TOAST);
        // Of one file without its cluster and its commit log no row is better known than another.
        let is_bare = !self.has_log && printing.work.table.database.is_empty();
        let is_known = verdict == VersionFate::Carved || !is_bare;
        let words = words_of(verdict).filter(|_| is_known).into_iter();
        let words = words.chain(doubts.into_iter().flatten()).chain(of_toast);
        let mut reasons: Vec<String> = words.map(str::to_owned).collect();
        if self.cells.has_rest() {
            printing.tally.rows.uncertain += 1;
            let why = "the row's columns end before the row does";
            reasons.push(format!("uncertain: {why}"));
            printing.tally.lose(LossPlace::row(place, why));
        }
        if met.left_over {
            printing.tally.rows.uncertain += 1;
            reasons.push(format!("uncertain: {LEFT_OVER}"));
            printing.tally.lose(LossPlace::row(place, LEFT_OVER));
        }
        if let Some(what) = self.cells.mended() {
            printing.tally.rows.mended += 1;
            let why =
                format!("the row's header contradicts itself: it was read with another {what}");
            reasons.push(format!("mended: {why}"));
            printing.tally.lose(LossPlace::row(place, why));
        }
        if !reasons.is_empty() && crew.outlet.is_server() {
            withhold(&reasons, place, &mut printing.tally);
            return;
        }
        let row = self.cells.row(tuple);
        let large = self.cells.too_large();
        let (is_loaded, fates) = if crew.outlet.is_server() && !large.is_empty() {
            let row = LargeRow {
                crew,
                table: printing.table,
                columns,
                row,
                texts: &mut bench.texts,
                chunks: bench.chunks.as_mut(),
            };
            row.load(large)
        } else {
            (false, LostValues::new())
        };
        printing.row_start = printing.out.rows.len();
        if !is_loaded {
            crew.options.form.row(
                &printing.work.table,
                &row,
                &mut bench.texts,
                &mut printing.out.rows,
            );
        }
        crew.refuse(printing.table, bench.texts.take_refusals());
        let faults = self.cells.faults().iter().cloned();
        let (mut is_partial, mut is_robbed) = (false, false);
        for fault in faults.chain(bench.texts.take_faults()) {
            let fate = fates.get(&fault.column);
            if fate == Some(&None) {
                // It came in parts, and stands in its row.
                continue;
            }
            is_partial = true;
            is_robbed |= fault.kind.robs_row();
            let column = columns.get(fault.column);
            let mut why = fault.kind.to_string();
            if let Some(Some(more)) = fate {
                why.push_str(more);
            }
            let mut left = self.cells.too_large().iter();
            if let Some((_, pointer)) = left.find(|(column, _)| *column == fault.column) {
                let chunks = bench.chunks.as_mut();
                why.push_str(&large_value::beside(
                    crew,
                    printing.table,
                    place,
                    fault.column,
                    *pointer,
                    chunks,
                ));
            }
            let column = column.map(|column| column.name.clone());
            let named = column.as_deref().unwrap_or_default();
            reasons.push(format!("partial: column {named}: {why}"));
            printing.tally.lose(LossPlace {
                column,
                ..LossPlace::row(place, why)
            });
        }
        if take_doubts(bench.chunks.as_mut()).left_over {
            reasons.push(format!("uncertain: {LEFT_OVER}"));
            printing.tally.lose(LossPlace::row(place, LEFT_OVER));
        }
        printing.tally.rows.partial += u64::from(is_partial);
        let is_null = is_robbed && !is_loaded && crew.options.partial == Partial::Null;
        if is_null && crew.outlet.is_server() {
            printing.out.rows.truncate(printing.row_start);
            withhold(&reasons, place, &mut printing.tally);
            return;
        }
        if !reasons.is_empty() && crew.outlet.parts_suspects(printing.table) {
            printing.out.rows.truncate(printing.row_start);
            let row = (&printing.work.table, &self.cells.row(tuple));
            // Whole or not at all, also where the printing fails.
            let mut suspect = suspect_row(&reasons, row, &mut bench.texts);
            printing.out.suspects.append(&mut suspect);
            printing.tally.rows.suspect += 1;
        }
        printing.tally.rows.written += 1;
        printing.row_start = printing.out.rows.len();
        if is_large || printing.out.bytes() > AHEAD_BYTES {
            let (table, piece) = (printing.table, printing.piece);
            crew.outlet.write_ahead(table, piece, &mut printing.out);
            printing.row_start = printing.out.rows.len();
            printing.out.rows.shrink_to(2 * AHEAD_BYTES);
        }
    }
}

/// A table of a server has no place for a row that may not be what it says: nobody could tell it
/// from the good ones again.
fn withhold(reasons: &[String], place: Tid, tally: &mut Tally) {
    tally.rows.withheld += 1;
    tally.rows.skipped += 1;
    let why = format!("{}: the row was not loaded", reasons.join("; "));
    tally.tell_row(place, &why);
}

/// Nor for a row that was torn: with nulls instead of what is lost it would be another row, and a
/// good one.
fn withhold_torn(fault: &Fault, columns: &[Column], place: Tid, tally: &mut Tally) {
    tally.rows.withheld += 1;
    tally.rows.skipped += 1;
    let column = columns.get(fault.column).map(|column| column.name.clone());
    let why = format!("{}: the row was not loaded", fault.kind);
    tally.lose(LossPlace {
        column,
        ..LossPlace::row(place, why)
    });
}

fn count(verdict: VersionFate, tally: &mut Tally) {
    let rows = &mut tally.rows;
    match verdict {
        VersionFate::Live => rows.live += 1,
        VersionFate::Deleted | VersionFate::Aborted => rows.dead += 1,
        VersionFate::PerhapsLive | VersionFate::PerhapsDeleted => rows.uncertain += 1,
        VersionFate::PerhapsReplaced => rows.withheld += 1,
        VersionFate::Carved => rows.carved += 1,
    }
}

fn take_doubts(chunks: Option<&mut ToastReader<'_>>) -> ChunkDoubts {
    chunks.map(ToastReader::take_doubts).unwrap_or_default()
}

/// What the account says of a row with this verdict; nothing where its fate is known.
fn words_of(verdict: VersionFate) -> Option<&'static str> {
    match verdict {
        VersionFate::Live | VersionFate::Deleted | VersionFate::Aborted => None,
        VersionFate::PerhapsLive => Some(
            "perhaps-live: the status of the transaction that wrote the row is lost: its page of pg_xact is missing, zeroed or cannot be read",
        ),
        VersionFate::PerhapsDeleted => Some(
            "perhaps-deleted: the status of the transaction that deleted the row is lost: its page of pg_xact or pg_multixact is missing, zeroed or cannot be read",
        ),
        VersionFate::PerhapsReplaced => Some(
            "perhaps-replaced: the status of the transaction that replaced the row is lost with its page of pg_xact or pg_multixact, and its newer version is preferred",
        ),
        VersionFate::Carved => {
            Some("carved: the row was found by its structure, where no line pointer leads")
        }
    }
}
