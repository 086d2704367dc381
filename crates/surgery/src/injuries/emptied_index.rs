//! The file of an index is empty.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_FILE, Site};
use crate::way_out;

/// See the module.
pub struct EmptiedIndex;

impl Injury for EmptiedIndex {
    fn name(&self) -> &'static str {
        "emptied-index"
    }

    fn summary(&self) -> &'static str {
        "the file of an index is empty"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(INDEX_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.files
            .filter(|files| files.bytes() > 0 && files.segments.len() == 1)?;
        let wound = Wound::cut(site, 0, "the file cut to nothing");
        Some(wound.must(&["empty-index"]).may(&[&["pages-beyond-end"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
