//! The one plan made from `--memory`: what each may hold, and what of the output depends on it.
//!
//! ```text
//! --memory ─┬─ limit: decides what stands in a document; a function of --memory and the threads alone
//!           └─ part:  a budget for leases; who gets less of it spills, waits or reads again
//! ```
//!
//! The two are never mixed. What is found must not depend on who happens to hold what, so that a
//! limit never asks what is free; and parts may add up to more than the whole, because not all are
//! held at the same time: each lease of a part is one of the whole, and fits only where it fits in
//! both.

use std::num::NonZeroUsize;

use crate::budget::Budget;

/// What decides about a document: the same at every run with the same `--memory` and threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Keys of which the order of rows is measured; more are sampled. Of one thread.
    KeyRanks,
    /// One value that a row holds in memory; longer ones go out in parts, or not at all.
    ValueBytes,
    /// One value of a catalog that is held in memory, while a statement is made of it.
    CatalogValueBytes,
    /// Rows that are gathered into columns: row groups end there. Of one thread.
    ColumnBatches,
    /// Lost keys that are listed for an index.
    LostKeys,
    /// Pages of a stream that are looked at again.
    StreamSuspects,
}

/// What is held for a while, and where more of it is only faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The buffers that pages are read into, one a thread.
    Windows,
    /// Places of rows, all of an index or none.
    RowPlaces,
    /// Pages of catalogs as recovery would leave them, for the names of things.
    ReplayedNames,
    /// All pages as recovery would leave them, for a salvage.
    ReplayedPages,
    /// What the pass keeps of the leaves of btrees, and which blocks are named by somebody.
    LeafSummaries,
    /// What is compared after the pass.
    Comparisons,
    /// Where the chunks of a TOAST relation stand, while they are gathered.
    ToastRuns,
    /// Keys and rows that are sorted.
    KeySort,
    /// Pages of large objects that are sorted; as much again for their rows.
    LargeObjects,
    /// Values of catalogs and statements made of them.
    CatalogValues,
    /// Rows that wait for those before them.
    OutputAhead,
}

/// What `--memory` allows, and who holds how much of it. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    whole: Budget,
}

/// Bytes of a plan that nobody asked for.
const USUAL_BYTES: u64 = 256 << 20;

impl Default for MemoryPlan {
    fn default() -> Self {
        Self::new(USUAL_BYTES)
    }
}

impl MemoryPlan {
    /// A plan for so many bytes in all.
    pub fn new(total_bytes: u64) -> Self {
        Self {
            whole: Budget::new(total_bytes),
        }
    }

    /// A plan that refuses nothing.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Bytes in all.
    pub fn total_bytes(&self) -> u64 {
        self.whole.limit()
    }

    /// The bytes that a document may depend on.
    pub fn limit(&self, of: Limit, threads: NonZeroUsize) -> u64 {
        let total = self.total_bytes();
        let threads = u64::try_from(threads.get()).unwrap_or(u64::MAX);
        match of {
            Limit::KeyRanks => total / threads,
            Limit::ValueBytes => total / 3,
            // A statement is made by copies: stored bytes, text, quoted text, statement.
            Limit::CatalogValueBytes => total / 8,
            Limit::ColumnBatches => total / 4 / threads.saturating_add(2),
            Limit::LostKeys | Limit::StreamSuspects => total / 4,
        }
    }

    /// A budget for leases: bounded by itself and by the whole.
    pub fn part(&self, of: Part) -> Budget {
        self.whole.child(self.part_bytes(of))
    }

    /// How large the budget of a part is.
    pub fn part_bytes(&self, of: Part) -> u64 {
        let total = self.total_bytes();
        match of {
            Part::Windows | Part::RowPlaces | Part::OutputAhead => total,
            Part::ReplayedPages => total / 2,
            Part::ReplayedNames | Part::LeafSummaries | Part::LargeObjects => total / 4,
            Part::Comparisons => total - total / 4,
            Part::ToastRuns | Part::KeySort | Part::CatalogValues => total / 8,
        }
    }

    /// Bytes on lease now.
    pub fn used(&self) -> u64 {
        self.whole.used()
    }

    /// The most bytes that were ever on lease at once.
    pub fn peak(&self) -> u64 {
        self.whole.peak()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Lease;

    const THREADS: NonZeroUsize = NonZeroUsize::new(2).expect("it is not zero");

    #[test]
    fn a_limit_does_not_depend_on_what_is_held() {
        let plan = MemoryPlan::new(48 << 20);
        let limits = || {
            [
                Limit::KeyRanks,
                Limit::ValueBytes,
                Limit::CatalogValueBytes,
                Limit::ColumnBatches,
                Limit::LostKeys,
                Limit::StreamSuspects,
            ]
            .map(|limit| plan.limit(limit, THREADS) >> 20)
        };
        assert_eq!(limits(), [24, 16, 6, 3, 12, 12]);
        let _all = plan.part(Part::Windows).take(48 << 20);
        assert_eq!(limits(), [24, 16, 6, 3, 12, 12]);
    }

    #[test]
    fn parts_together_hold_no_more_than_the_whole() {
        let plan = MemoryPlan::new(64 << 20);
        let parts = [
            Part::Comparisons,
            Part::LeafSummaries,
            Part::ReplayedNames,
            Part::CatalogValues,
        ];
        let leases = parts.map(|part| {
            let budget = plan.part(part);
            budget.take_some(budget.limit(), 1 << 10)
        });
        let held: u64 = leases.iter().map(Lease::bytes).sum();
        assert_eq!(plan.clone().used(), held, "clones share one account");
        assert!(plan.peak() <= plan.total_bytes() + (2 << 10), "{held}");
        drop(leases);
        assert_eq!(plan.used(), 0);
    }
}
