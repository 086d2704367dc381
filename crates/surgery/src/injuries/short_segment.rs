//! The first segment of a large table was cut.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct ShortSegment;

impl Injury for ShortSegment {
    fn name(&self) -> &'static str {
        "short-segment"
    }

    fn summary(&self) -> &'static str {
        "the first segment of a large table was cut"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let segment = site.files?.segments.first()?;
        let block = u64::from(site.cluster.build.block_size);
        let len = segment.len.checked_sub(block * (1 + seed % 100))?;
        let wound = Wound::cut(site, len, format!("segment 0 cut to {len} bytes"));
        Some(
            wound
                .must(&["short-segment", "extra-segment"])
                .may(&[followers::SHORT_FILES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
