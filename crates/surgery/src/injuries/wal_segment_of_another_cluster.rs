//! The WAL segment with the checkpoint record carries another system identifier.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_HEAD, flip};
use crate::way_out;

/// See the module.
pub struct WalSegmentOfAnotherCluster;

impl Injury for WalSegmentOfAnotherCluster {
    fn name(&self) -> &'static str {
        "wal-segment-of-another-cluster"
    }

    fn summary(&self) -> &'static str {
        "the WAL segment with the checkpoint record carries another system identifier"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_HEAD)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "xlp_sysid changed", |page| flip(page, 24))?;
        Some(
            wound
                .must(&["wal-page-header", "checkpoint-record-missing"])
                .may(&[followers::WAL]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::WAL
    }
}
