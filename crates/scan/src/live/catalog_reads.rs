//! Catalogs that a server writes while they are read.

use std::collections::BTreeMap;

use pgclinic_cluster::LIVE_LIMITS;
use pgclinic_format::Oid;

/// How often catalogs were read that were not whole. A page that is damaged makes them so for ever,
/// one that was half written does not.
#[derive(Default, Debug)]
pub struct CatalogReads {
    by_database: BTreeMap<Oid, u32>,
}

impl CatalogReads {
    /// The catalogs of this database were read, and were not whole. `true`: a later round reads
    /// them again; `false`: they are taken as they are.
    pub fn are_read_again(&mut self, database: Oid) -> bool {
        let count = self.by_database.entry(database).or_default();
        *count += 1;
        *count < LIVE_LIMITS.catalog_reads
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
    use super::*;

    #[test]
    fn catalogs_that_never_become_whole_are_taken_as_they_are() {
        let mut reads = CatalogReads::default();
        let mut read = |database| reads.are_read_again(database);
        assert_eq!([1, 1, 1, 1].map(&mut read), [true, true, false, false]);
        assert!(read(5), "each database has its own count");
        assert_eq!(reads.databases().collect::<Vec<_>>(), [1, 5]);
        reads.are_whole(1);
        assert!(reads.are_read_again(1), "it was whole in between");
    }
}
