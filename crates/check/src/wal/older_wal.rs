//! WAL from before the redo point: standbys and archives may still wait for it.

use pgclinic_cluster::Cluster;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::ClusterCheck;
use crate::findings::Findings;
use crate::wal::breaks::{WalRule, in_older};
use crate::wal::page_header::WAL_PAGE_HEADER;
use crate::wal::record_broken::WAL_RECORD_BROKEN;
use crate::wal::record_checksum::WAL_RECORD_CHECKSUM;
use crate::wal::segment_missing::WAL_SEGMENT_MISSING;

/// Tells the four rules about WAL, as warnings.
pub struct OlderWal;

impl ClusterCheck for OlderWal {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[] }
    }

    fn borrows(&self) -> &'static [&'static Rule] {
        const {
            &[
                &WAL_SEGMENT_MISSING,
                &WAL_PAGE_HEADER,
                &WAL_RECORD_CHECKSUM,
                &WAL_RECORD_BROKEN,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Full
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(recovery) = cluster.recovery() else {
            return;
        };
        for found in in_older(cluster) {
            let at_head = recovery.shape.segment_of(found.end.at) == found.end.at;
            // The look at the heads of segments has reported it.
            if at_head && found.teller() == WalRule::Page {
                continue;
            }
            out.add(found.draft(found.teller().rule(), recovery));
        }
    }
}
