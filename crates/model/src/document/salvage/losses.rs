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
    /// `index-keys`, `index-entries`, `unreadable-rows`, `destination`, `rows-per-page` or
    /// `pg-class`.
    pub witness: String,
    /// How many.
    pub rows: u64,
    /// Neither more nor less; otherwise a row that was deleted, and that VACUUM has not passed, may
    /// be counted in.
    #[serde(default)]
    pub exact: bool,
}

/// Keys of a unique index.
pub const INDEX_KEYS: &str = "index-keys";
/// Entries of an index.
pub const INDEX_ENTRIES: &str = "index-entries";
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
}

impl PageNotes {
    /// A page without rows: nothing should lead to it.
    pub fn note_vacant(&mut self, block: BlockNo) {
        let behind = block.saturating_add(1);
        match self.vacant.last_mut() {
            Some((_, end)) if *end == block => *end = behind,
            _ => self.vacant.push((block, behind)),
        }
    }

    /// Takes in what was seen of other pages.
    pub fn add(&mut self, other: PageNotes) {
        self.damaged.extend(other.damaged);
        self.vacant.extend(other.vacant);
        self.unread += other.unread;
        self.found_on_unread += other.found_on_unread;
        self.found_on_damaged += other.found_on_damaged;
        self.row_pages += other.row_pages;
        self.page_rows += other.page_rows;
    }

    /// In order, each once.
    pub fn settle(&mut self) {
        self.damaged.sort_unstable();
        self.damaged.dedup();
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
            let (witness, rows) = self.estimated(estimate);
            add(&mut lost, witness, rows, false);
        }
        self.rows.lost = lost.iter().map(|by| by.rows).sum();
        self.rows.lost_known = known;
        self.rows.lost_estimated = self.rows.lost.saturating_sub(known);
        self.lost_by = lost;
        self.is_counted = true;
    }

    /// Rows of the pages of which nothing is left, as many as its other pages have, or as it once
    /// had.
    fn estimated(&self, estimate: Estimate) -> (&'static str, u64) {
        let notes = &self.pages;
        let (witness, rows, pages) = match notes.row_pages {
            0 => (PG_CLASS, estimate.rows, estimate.pages.max(1)),
            pages => (ROWS_PER_PAGE, notes.page_rows, pages),
        };
        let rows = u128::from(rows) * u128::from(notes.unread) / u128::from(pages);
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        (witness, rows.saturating_sub(notes.found_on_unread))
    }
}

fn add(lost: &mut Vec<LostBy>, witness: &str, rows: u64, exact: bool) {
    if rows > 0 {
        lost.push(LostBy {
            witness: witness.to_owned(),
            rows,
            exact,
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
        };
        gone.count_losses(None, rows);
        assert_eq!(told(&gone), [(PG_CLASS, 999)]);
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
}
