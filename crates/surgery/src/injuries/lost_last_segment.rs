//! The last segment of a large table is gone.

use crate::followers;
use crate::index_entries::entries_to;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct LostLastSegment;

impl Injury for LostLastSegment {
    fn name(&self) -> &'static str {
        "lost-last-segment"
    }

    fn summary(&self) -> &'static str {
        "the last segment of a large table is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let files = site.files?;
        let last = files
            .segments
            .last()
            .filter(|last| last.number > 0 && last.len > 0)?;
        let left = u64::from(last.number) * site.cluster.build.segment_blocks();
        let marked = site.last_marked();
        let marked = marked.is_some_and(|marked| u64::from(marked) >= left);
        let named = entries_to(site, left..u64::MAX) > 0;
        let seen = match (named, marked) {
            (true, _) => Some("file-truncated"),
            (false, true) => Some("map-beyond-end"),
            (false, false) => None,
        };
        let wound = Wound::remove(
            files.path(last.number),
            format!("segment {} removed", last.number),
        );
        let wound = wound.may(&[followers::SHORT_FILES]);
        Some(wound.must_or_blind(seen, "a table that ends with a full segment is legal"))
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
