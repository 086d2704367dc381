//! A visibility map that `pg_class` knows and that is gone: a witness that cannot be asked.
//!
//! Its marks prove that blocks held rows. Without it, and without an index that names every row,
//! `pg_class` alone raises the question, and nothing here settles it. `relpages` by itself does not
//! even raise it: a table that was made, analyzed and truncated in one transaction has fewer blocks
//! than it counts, and so has one whose statistics were restored, or whose VACUUM broke off between
//! the truncation and the note of it.

use pgclinic_format::Fork;
use pgclinic_source::Presence;

use crate::cluster::Cluster;
use crate::files::ForkFiles;
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

    /// `pg_class` counts all-visible pages of the table in these files, and its map is missing.
    /// Nothing while recovery, or a server, may still make one.
    pub fn has_lost_map(&self, table: &Relation, files: &ForkFiles) -> bool {
        let is_counted = table.relallvisible > 0 && table.persistence == Persistence::Permanent;
        // A selection of forks may leave the map out.
        let is_missing = || {
            let map = ForkFiles {
                fork: Fork::Vm,
                ..files.clone()
            };
            Presence::of_file(self.source().as_ref(), &map.path(0)).is_missing()
        };
        is_counted && self.counts_own_pages() && !self.needs_recovery() && is_missing()
    }
}
