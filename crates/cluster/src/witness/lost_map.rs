//! A visibility map that `pg_class` knows and that is gone: a witness that cannot be asked.
//!
//! Its marks prove that blocks held rows. Without it, and without an index that names every row,
//! `pg_class` alone raises the question, and nothing here settles it. So does `relpages`, though a
//! table that was made, analyzed and truncated in one transaction has fewer blocks than it counts,
//! and one whose VACUUM broke off between the truncation and the note of it; where statistics are
//! restored it raises nothing.

use pgclinic_format::Fork;
use pgclinic_source::Presence;

use crate::cluster::Cluster;
use crate::files::{ForkFiles, read_block};
use crate::relation::{Persistence, Relation};

/// From this major on statistics are restored beside rows that have no map yet
/// (`pg_restore_relation_stats`).
const STATISTICS_RESTORED: u16 = 18;

impl Cluster {
    /// What `pg_class` counts of pages was true of these files once; from 18 on it may have been
    /// restored, and be of another cluster.
    pub fn counts_own_pages(&self) -> bool {
        self.layout.major < STATISTICS_RESTORED
    }

    /// `pg_class` counts all-visible pages of the table in these files, and its map is missing, or
    /// all zeros. Nothing while recovery, or a server, may still make one.
    pub fn has_lost_map(&self, table: &Relation, files: &ForkFiles) -> bool {
        let is_counted = table.relallvisible > 0 && table.persistence == Persistence::Permanent;
        // A selection of forks may leave the map out.
        let is_missing = || {
            let map = ForkFiles {
                fork: Fork::Vm,
                ..files.clone()
            };
            let source = self.source().as_ref();
            // A map without a mark has a header all the same.
            let is_zeroed = || {
                let is_short = source.len(&map.path(0)) == Ok(u64::from(self.build.block_size));
                let first = is_short.then(|| read_block(source, &map, self.build, 0));
                let first = first.flatten();
                first.is_some_and(|page| page.iter().all(|byte| *byte == 0))
            };
            Presence::of_file(source, &map.path(0)).is_missing() || is_zeroed()
        };
        is_counted && self.counts_own_pages() && !self.needs_recovery() && is_missing()
    }
}
