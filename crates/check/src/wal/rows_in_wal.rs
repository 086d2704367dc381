//! WAL from before the redo point breaks, so that pages and files cannot be held against it.

use pgclinic_cluster::Cluster;
use pgclinic_model::Rule;
use pgclinic_model::document::{Level, NotChecked};

use crate::check::ClusterCheck;
use crate::findings::Findings;

/// Says what `page-older-than-wal` and `missing-file` could not ask.
pub struct RowsInWal;

impl ClusterCheck for RowsInWal {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        if let Some(gap) = cluster.unasked_rows_in_wal() {
            out.not_checked(NotChecked {
                what: gap.what,
                why: gap.why,
                inherent: false,
            });
        }
    }
}
