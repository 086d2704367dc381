//! How many rows of a table are lost, and who says so.
//!
//! ```text
//! keys of a unique index, else entries of another one ─┐
//! rows that were met and could not be read ────────────┴─ the larger number: both count the same rows
//! rows that the destination did not take               ── beside it
//! pages of which nothing is left, without an index     ── rows of a page of the same table, or of pg_class: an estimate
//! ```

use pgclinic_format::BlockNo;
use serde::{Deserialize, Serialize};

use super::TableAccount;

/// Rows that are lost, by the witness that counts them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostBy {
    /// `index-keys`, `index-entries`, `foreign-keys`, `toast-values`, `unreadable-rows`,
    /// `destination`, `rows-per-page` or `pg-class`.
    pub witness: String,
    /// How many.
    pub rows: u64,
    /// Neither more nor less; otherwise a row that was deleted, and that VACUUM has not passed, may
    /// be counted in.
    #[serde(default)]
    pub exact: bool,
    /// Of an estimate: no more than these stood there, whatever the rows were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

/// Keys of a unique index.
pub const INDEX_KEYS: &str = "index-keys";
/// Entries of an index.
pub const INDEX_ENTRIES: &str = "index-entries";
/// Keys that live rows of other tables refer to.
pub const FOREIGN_KEYS: &str = "foreign-keys";
/// Live TOASTed values to which no row points.
pub const TOAST_VALUES: &str = "toast-values";
/// Line pointers that name no row, and rows that a server does not give.
const UNREADABLE: &str = "unreadable-rows";
/// The destination took them not.
const DESTINATION: &str = "destination";
/// An estimate by the pages that are there.
const ROWS_PER_PAGE: &str = "rows-per-page";
/// An estimate by what `pg_class` says of the table.
const PG_CLASS: &str = "pg-class";

/// What was seen of the pages of a table, for those who ask its indexes; no part of the account.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PageNotes {
    /// Blocks of which something could not be read.
    pub damaged: Vec<BlockNo>,
    /// Pages that were read and are damaged, those of the TOAST relation too.
    #[serde(default)]
    pub seen_damaged: u64,
    /// A page has the LSN of the table's own visibility map: the file is its own.
    #[serde(default)]
    pub has_own_map: bool,
    /// Tablespace and number of another table's file of which a page has the LSN of the map.
    #[serde(default)]
    pub other_map: Option<(u32, u32)>,
    /// Where the table ends is not known: more pages than these may be missing.
    #[serde(default)]
    pub is_open_ended: bool,
    /// Blocks without any line pointer, zeros or not, as half-open ranges.
    pub vacant: Vec<(BlockNo, BlockNo)>,
    /// Pages of which no line pointer is left, and rows that were found on them all the same.
    pub unread: u64,
    /// Rows that were found all the same on pages of which no line pointer is left.
    pub found_on_unread: u64,
    /// Rows that were found on pages of which something could not be read.
    pub found_on_damaged: u64,
    /// Sound pages that gave rows, and those rows.
    pub row_pages: u64,
    /// Rows of those pages.
    pub page_rows: u64,
    /// Live values of the TOAST relation.
    #[serde(default)]
    pub toast_values: u64,
    /// Pointers to them in rows that may be live.
    #[serde(default)]
    pub toast_pointers: u64,
    /// A row has more columns than are known, and may have such pointers in them.
    #[serde(default)]
    pub lacks_columns: bool,
    /// By unit of [`ROOT_BLOCKS`] blocks, a sum over the line pointers that an index may name.
    #[serde(default)]
    pub roots: Vec<(BlockNo, u64)>,
    /// Rows that an index names and whose line pointers are not there, by block and item.
    #[serde(default)]
    pub lost_items: Vec<(BlockNo, u16)>,
}

/// Blocks whose line pointers have one sum.
pub const ROOT_BLOCKS: BlockNo = 128;

impl PageNotes {
    /// A page without rows: nothing should lead to it.
    pub fn note_vacant(&mut self, block: BlockNo) {
        let behind = block.saturating_add(1);
        match self.vacant.last_mut() {
            Some((_, end)) if *end == block => *end = behind,
            _ => self.vacant.push((block, behind)),
        }
    }

    /// The sum over the line pointers of one more page that an index may name.
    pub fn note_roots(&mut self, block: BlockNo, sum: u64) {
        let unit = block / ROOT_BLOCKS;
        match self.roots.last_mut() {
            Some((last, known)) if *last == unit => *known = known.wrapping_add(sum),
            _ => self.roots.push((unit, sum)),
        }
    }

    /// Takes in what was seen of other pages.
    pub fn add(&mut self, other: PageNotes) {
        self.damaged.extend(other.damaged);
        self.seen_damaged += other.seen_damaged;
        self.is_open_ended |= other.is_open_ended;
        self.has_own_map |= other.has_own_map;
        self.other_map = self.other_map.or(other.other_map);
        self.vacant.extend(other.vacant);
        self.unread += other.unread;
        self.found_on_unread += other.found_on_unread;
        self.found_on_damaged += other.found_on_damaged;
        self.row_pages += other.row_pages;
        self.page_rows += other.page_rows;
        self.toast_values += other.toast_values;
        self.toast_pointers += other.toast_pointers;
        self.lacks_columns |= other.lacks_columns;
        self.roots.extend(other.roots);
        self.lost_items.extend(other.lost_items);
    }

    /// In order, each once.
    pub fn settle(&mut self) {
        self.damaged.sort_unstable();
        self.damaged.dedup();
        self.lost_items.sort_unstable();
        self.lost_items.dedup();
        self.settle_roots();
        self.vacant.sort_unstable();
        let mut merged: Vec<(BlockNo, BlockNo)> = Vec::with_capacity(self.vacant.len());
        for (start, end) in self.vacant.drain(..) {
            match merged.last_mut() {
                Some((_, last)) if *last >= start => *last = end.max(*last),
                _ => merged.push((start, end)),
            }
        }
        self.vacant = merged;
    }

    fn settle_roots(&mut self) {
        self.roots.sort_unstable_by_key(|(unit, _)| *unit);
        self.roots.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = kept.1.wrapping_add(later.1);
            }
            is_same
        });
    }
}

/// What an index counts of the rows that are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexCount {
    /// What counts them: [`INDEX_KEYS`] or [`INDEX_ENTRIES`].
    pub witness: &'static str,
    /// How many.
    pub rows: u64,
    /// Neither more nor less.
    pub exact: bool,
}

/// What `pg_class` says of a table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Estimate {
    /// `relpages`, or what its files had.
    pub pages: u64,
    /// `reltuples`.
    pub rows: u64,
    /// Rows that the smallest of them would have room for on a page.
    pub page_rows_max: u64,
    /// So many of these pages its files do not have.
    pub pages_short: u64,
}

/// How many rows are lost by estimate, and how many at most.
struct Estimated {
    witness: &'static str,
    rows: u64,
    at_most: u64,
}

impl TableAccount {
    /// Counts what is lost; `index` is what an index says, if one was asked that has all rows.
    pub fn count_losses(&mut self, index: Option<IndexCount>, estimate: Estimate) {
        let met = self.rows.lost.saturating_sub(self.rows.refused);
        let mut lost = Vec::new();
        match index {
            Some(index) if index.rows >= met => {
                add(&mut lost, index.witness, index.rows, index.exact);
            }
            _ => add(&mut lost, UNREADABLE, met, true),
        }
        add(&mut lost, DESTINATION, self.rows.refused, true);
        let known = lost.iter().map(|by| by.rows).sum::<u64>();
        if index.is_none() {
            let by = self.estimated(estimate);
            if by.rows > 0 {
                lost.push(LostBy {
                    witness: by.witness.to_owned(),
                    rows: by.rows,
                    exact: false,
                    at_most: (by.at_most > 0).then_some(by.at_most.max(by.rows)),
                });
            }
        }
        self.rows.lost = lost.iter().map(|by| by.rows).sum();
        self.rows.lost_known = known;
        self.rows.lost_estimated = self.rows.lost.saturating_sub(known);
        self.lost_by = lost;
        self.is_counted = true;
    }

    /// Counts rows that others know of and that are missing: no fewer are lost. What was counted
    /// otherwise, or is an estimate, stays where it is more.
    pub fn count_at_least(&mut self, witness: &str, rows: u64) {
        let is_of_rows = |by: &LostBy| by.witness != DESTINATION;
        let counted = self.lost_by.iter().filter(|by| is_of_rows(by));
        if rows <= counted.map(|by| by.rows).sum() {
            return;
        }
        self.lost_by.retain(|by| !is_of_rows(by));
        let by_others = LostBy {
            witness: witness.to_owned(),
            rows,
            exact: false,
            at_most: None,
        };
        self.lost_by.insert(0, by_others);
        self.rows.lost = self.lost_by.iter().map(|by| by.rows).sum();
        (self.rows.lost_known, self.rows.lost_estimated) = (self.rows.lost, 0);
    }

    /// Takes what stands in files that could not be read from what is lost: all of it, or the share
    /// of their pages where others are damaged too.
    pub(super) fn part_not_read(&mut self) {
        let (unread, damaged) = (self.pages_not_read, self.damaged_pages);
        let is_done = self.rows.not_read > 0;
        if unread == 0 || !self.out_of_reach || is_done {
            return;
        }
        let is_of_pages = |by: &&mut LostBy| by.witness != DESTINATION;
        for by in self.lost_by.iter_mut().filter(is_of_pages) {
            let part = share(by.rows, unread, unread.saturating_add(damaged));
            by.rows -= part.min(by.rows);
            by.exact = false;
            by.at_most = None;
            self.rows.not_read += part;
        }
        self.lost_by.retain(|by| by.rows > 0);
        let of = |is_wanted: fn(&str) -> bool| {
            let lost = self.lost_by.iter().filter(|by| is_wanted(&by.witness));
            lost.map(|by| by.rows).sum::<u64>()
        };
        let (known, estimated) = (of(|by| !is_estimate(by)), of(is_estimate));
        self.rows.lost = known + estimated;
        (self.rows.lost_known, self.rows.lost_estimated) = (known, estimated);
    }

    /// Rows of the pages of which nothing is left, as many as its other pages have, or as
    /// `pg_class` counts more than there are.
    fn estimated(&self, estimate: Estimate) -> Estimated {
        let notes = &self.pages;
        let found = notes.found_on_unread;
        // Where the table ends is known: no more pages than these are missing.
        let bounded = if notes.is_open_ended { 0 } else { notes.unread };
        let at_most = estimate.page_rows_max.saturating_mul(bounded);
        // Where the end is lost, as many as were counted once are.
        let is_cut = notes.is_open_ended && notes.unread > 0;
        let unread = notes
            .unread
            .max(if is_cut { estimate.pages_short } else { 0 });
        let of = |witness, rows| Estimated {
            witness,
            rows,
            at_most: at_most.saturating_sub(found),
        };
        if notes.row_pages == 0 {
            let rows = share(estimate.rows, unread, estimate.pages.max(1));
            return of(PG_CLASS, rows.saturating_sub(found));
        }
        let by_pages = share(notes.page_rows, unread, notes.row_pages).saturating_sub(found);
        // A table that has not grown since it was counted, and of which not much was deleted.
        let missing = estimate.rows.saturating_sub(notes.page_rows + found);
        let is_fresh = notes.row_pages + unread <= estimate.pages;
        if is_fresh && missing > 0 && missing <= by_pages.saturating_add(by_pages / 10) {
            of(PG_CLASS, missing)
        } else {
            of(ROWS_PER_PAGE, by_pages)
        }
    }
}

/// A witness that names no single row.
fn is_estimate(witness: &str) -> bool {
    witness == ROWS_PER_PAGE || witness == PG_CLASS
}

/// `rows` times `part` of `whole`.
fn share(rows: u64, part: u64, whole: u64) -> u64 {
    let rows = u128::from(rows) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn add(lost: &mut Vec<LostBy>, witness: &str, rows: u64, exact: bool) {
    if rows > 0 {
        lost.push(LostBy {
            witness: witness.to_owned(),
            rows,
            exact,
            at_most: None,
        });
    }
}

/// The same of several tables: by witness, exact where all are.
pub(super) fn sum(tables: &[TableAccount]) -> Vec<LostBy> {
    let mut sums: Vec<LostBy> = Vec::new();
    for by in tables.iter().flat_map(|table| &table.lost_by) {
        match sums.iter_mut().find(|sum| sum.witness == by.witness) {
            Some(sum) => {
                sum.rows += by.rows;
                sum.exact &= by.exact;
                let both = sum.at_most.zip(by.at_most);
                sum.at_most = both.map(|(one, other)| one.saturating_add(other));
            }
            None => sums.push(by.clone()),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::RowCounts;

    fn table(lost: u64, refused: u64) -> TableAccount {
        TableAccount {
            rows: RowCounts {
                lost,
                refused,
                ..RowCounts::default()
            },
            ..TableAccount::default()
        }
    }

    fn told(table: &TableAccount) -> Vec<(&str, u64)> {
        let lost = table.lost_by.iter();
        lost.map(|by| (by.witness.as_str(), by.rows)).collect()
    }

    #[test]
    fn keys_count_the_rows_that_were_met_too() {
        let keys = |rows| {
            Some(IndexCount {
                witness: INDEX_KEYS,
                rows,
                exact: false,
            })
        };
        let mut of_keys = table(21, 0);
        of_keys.count_losses(keys(8549), Estimate::default());
        assert_eq!(told(&of_keys), [(INDEX_KEYS, 8549)]);
        assert_eq!((of_keys.rows.lost, of_keys.rows.lost_known), (8549, 8549));
        let mut met = table(30, 9);
        met.count_losses(keys(3), Estimate::default());
        assert_eq!(told(&met), [(UNREADABLE, 21), (DESTINATION, 9)]);
    }

    #[test]
    fn pages_without_an_index_are_estimated() {
        let mut hurt = table(0, 0);
        hurt.pages = PageNotes {
            unread: 4,
            found_on_unread: 10,
            row_pages: 10,
            page_rows: 1200,
            ..PageNotes::default()
        };
        hurt.count_losses(None, Estimate::default());
        assert_eq!(told(&hurt), [(ROWS_PER_PAGE, 470)]);
        assert_eq!((hurt.rows.lost_known, hurt.rows.lost_estimated), (0, 470));
        let mut gone = table(0, 0);
        gone.pages.unread = 20;
        let rows = Estimate {
            pages: 20,
            rows: 999,
            page_rows_max: 291,
            pages_short: 0,
        };
        gone.count_losses(None, rows);
        assert_eq!(told(&gone), [(PG_CLASS, 999)]);
        assert_eq!(gone.lost_by.first().and_then(|by| by.at_most), Some(5820));
    }

    #[test]
    fn what_could_not_be_read_is_not_lost() {
        let not_read = |damaged_pages| {
            let mut hurt = TableAccount {
                out_of_reach: true,
                pages_not_read: 30,
                damaged_pages,
                ..table(5, 5)
            };
            let keys = IndexCount {
                witness: INDEX_KEYS,
                rows: 800,
                exact: true,
            };
            hurt.count_losses(Some(keys), Estimate::default());
            hurt.part_not_read();
            (hurt.rows.not_read, hurt.rows.lost, hurt.lost_by.len())
        };
        // What the destination refused was read.
        assert_eq!(not_read(0), (800, 5, 1));
        assert_eq!(not_read(10), (600, 205, 2));
    }

    #[test]
    fn the_last_page_has_what_the_others_lack_of_the_count() {
        let lost = |estimate| {
            let mut hurt = table(0, 0);
            hurt.pages = PageNotes {
                unread: 1,
                row_pages: 33,
                page_rows: 3960,
                ..PageNotes::default()
            };
            hurt.count_losses(None, estimate);
            hurt.rows.lost
        };
        let estimate = |pages, rows| Estimate {
            pages,
            rows,
            page_rows_max: 291,
            pages_short: 0,
        };
        assert_eq!(lost(estimate(34, 4000)), 40);
        // Rows were deleted, or the table grew, since it was counted.
        assert_eq!(lost(estimate(34, 9000)), 120);
        assert_eq!(lost(estimate(20, 4000)), 120);
    }

    /// A witness names few of the blocks that a cut table lost.
    #[test]
    fn a_cut_table_lacks_the_pages_that_were_counted() {
        let lost = |is_open_ended, pages_short| {
            let mut cut = table(0, 0);
            cut.pages = PageNotes {
                unread: 8,
                row_pages: 30,
                page_rows: 3600,
                is_open_ended,
                ..PageNotes::default()
            };
            let estimate = Estimate {
                pages: 70,
                rows: 8400,
                page_rows_max: 291,
                pages_short,
            };
            cut.count_losses(None, estimate);
            cut.rows.lost
        };
        assert_eq!(lost(true, 40), 4800);
        assert_eq!(lost(true, 0), 960);
        assert_eq!(lost(false, 40), 960);
    }

    #[test]
    fn vacant_blocks_are_merged() {
        let mut notes = PageNotes {
            vacant: vec![(7, 9), (0, 2), (9, 10), (2, 3)],
            damaged: vec![5, 1, 5],
            ..PageNotes::default()
        };
        notes.note_vacant(10);
        notes.settle();
        assert_eq!(notes.vacant, [(0, 3), (7, 11)]);
        assert_eq!(notes.damaged, [1, 5]);
    }

    #[test]
    fn sums_of_a_unit_are_added_in_any_order() {
        let mut notes = PageNotes::default();
        notes.note_roots(130, u64::MAX);
        notes.note_roots(0, 7);
        notes.note_roots(255, 3);
        notes.settle();
        notes.settle();
        assert_eq!(notes.roots, [(0, 7), (1, 2)]);
    }
}
