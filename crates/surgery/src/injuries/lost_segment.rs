//! A segment of a large table is gone, a later one is there.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct LostSegment;

impl Injury for LostSegment {
    fn name(&self) -> &'static str {
        "lost-segment"
    }

    fn summary(&self) -> &'static str {
        "a segment of a large table is gone, a later one is there"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::large(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let files = site.files?;
        let (number, rule) = match files.segments.len() {
            0 | 1 => return None,
            2 => (0, "missing-file"),
            _ => (1, "missing-segment"),
        };
        let wound = Wound::remove(files.path(number), format!("segment {number} removed"));
        Some(wound.must(&[rule]).may(&[followers::SHORT_FILES]))
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
