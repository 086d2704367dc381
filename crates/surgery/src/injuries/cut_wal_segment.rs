//! The WAL segment with the checkpoint record is cut before it.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT};
use crate::way_out;

/// See the module.
pub struct CutWalSegment;

impl Injury for CutWalSegment {
    fn name(&self) -> &'static str {
        "cut-wal-segment"
    }

    fn summary(&self) -> &'static str {
        "the WAL segment with the checkpoint record is cut before it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let len = site.offset;
        let wound = Wound::cut(site, len, format!("the segment cut to {len} bytes"));
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
