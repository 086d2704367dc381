//! Catalogs that a server writes while they are read.
//!
//! ```text
//! torn, or a page to which index entries lead is not there ──► read again ──┬─ whole: it was on its way
//!                                                                           ├─ torn for the last time: damaged
//!                                                                           └─ the same pages under WAL that overlaps: lost
//! ```

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Catalog, LIVE_LIMITS};
use pgclinic_format::{BlockNo, Oid};

use super::fresh_view::ViewPosition;

/// Pages of catalogs, by the OID of the catalog.
type CatalogPages = BTreeSet<(Oid, BlockNo)>;

/// How often catalogs were read that were not whole. A page that is damaged makes them so for ever,
/// one that was half written does not.
#[derive(Default, Debug)]
pub struct CatalogReads {
    by_database: BTreeMap<Oid, Reads>,
}

/// Those of one database.
#[derive(Default, Debug)]
struct Reads {
    count: u32,
    /// What the last one missed, and when.
    lost_pages: CatalogPages,
    position: ViewPosition,
}

impl Reads {
    /// `true`: what this read misses may be on its way, or a page of it was half written.
    fn add(&mut self, lost_pages: &CatalogPages, position: ViewPosition) -> bool {
        let is_same = self.lost_pages == *lost_pages && self.position.overlaps(position);
        self.count += 1;
        self.lost_pages.clone_from(lost_pages);
        self.position = position;
        let (is_settled, needed) = if lost_pages.is_empty() {
            (true, LIVE_LIMITS.torn_catalog_reads)
        } else {
            (is_same, LIVE_LIMITS.catalog_reads)
        };
        !is_settled || self.count < needed
    }
}

impl CatalogReads {
    /// These catalogs were read in a view at this position, and are not whole. `true`: a later
    /// round reads them again; `false`: they are taken as they are.
    pub fn are_read_again(&mut self, catalog: &Catalog, position: ViewPosition) -> bool {
        let reads = self.by_database.entry(catalog.database).or_default();
        reads.add(&catalog.lost_pages, position)
    }

    /// They were read and are whole: what is torn later was written later.
    pub fn are_whole(&mut self, database: Oid) {
        self.by_database.remove(&database);
    }

    /// Databases whose catalogs were not whole when they were read last.
    pub fn databases(&self) -> impl Iterator<Item = Oid> {
        self.by_database.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::Lsn;

    use super::*;

    fn between(redo: u64, wal_end: u64) -> ViewPosition {
        ViewPosition {
            redo: Some(Lsn(redo)),
            wal_end: Some(Lsn(wal_end)),
        }
    }

    #[test]
    fn catalogs_that_never_become_whole_are_taken_as_they_are() {
        let mut reads = Reads::default();
        let mut read = || reads.add(&CatalogPages::new(), between(1, 2));
        let again: Vec<bool> = (0..6).map(|_| read()).collect();
        assert_eq!(again, [true, true, true, true, false, false]);
    }

    #[test]
    fn pages_are_lost_that_two_overlapping_looks_miss() {
        let mut reads = Reads::default();
        let lost = CatalogPages::from([(1259, 3)]);
        let other = CatalogPages::from([(1259, 4)]);
        assert!(reads.add(&lost, between(10, 20)));
        assert!(reads.add(&other, between(10, 30)), "another page");
        assert!(reads.add(&other, between(31, 40)), "a checkpoint between");
        assert!(!reads.add(&other, between(31, 50)));
    }
}
