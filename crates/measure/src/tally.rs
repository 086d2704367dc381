//! Sums over the pages of a relation.

use super::{ColumnSums, PageSums, Sums};

sums! {
    /// What was added up of a relation, or of a part of it.
    pub(super) struct Tally {
        pub(super) of_pages: PageSums,
        /// By column.
        pub(super) of_columns: Vec<ColumnSums>,
        pub(super) pages: u64,
        pub(super) empty_pages: u64,
        pub(super) broken_pages: u64,
        /// Pages of zeros that the visibility map says held rows.
        pub(super) emptied_pages: u64,
        /// Pages whose rows say of transactions what `pg_xact` denies.
        pub(super) pages_against_status: u64,
        /// Rows whose transaction's fate is lost.
        pub(super) rows_undecided: u64,
    }
}

impl Tally {
    /// Pages that could not be read.
    pub(super) fn add_unread(&mut self, pages: u64) {
        self.pages += pages;
        self.broken_pages += pages;
    }
}
