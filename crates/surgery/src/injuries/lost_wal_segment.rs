//! The WAL segment with the checkpoint record is gone.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, WAL_CHECKPOINT};
use crate::way_out;

/// See the module.
pub struct LostWalSegment;

impl Injury for LostWalSegment {
    fn name(&self) -> &'static str {
        "lost-wal-segment"
    }

    fn summary(&self) -> &'static str {
        "the WAL segment with the checkpoint record is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(WAL_CHECKPOINT)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::remove(site.path.clone(), "the segment removed");
        Some(wound.must(&["wal-segment-missing"]).may(&[followers::WAL]))
    }

    fn way_out(&self) -> &'static str {
        way_out::WAL
    }
}
