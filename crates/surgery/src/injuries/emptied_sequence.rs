//! The file of a sequence is empty.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_FILE, Site};
use crate::way_out;

/// See the module.
pub struct EmptiedSequence;

impl Injury for EmptiedSequence {
    fn name(&self) -> &'static str {
        "emptied-sequence"
    }

    fn summary(&self) -> &'static str {
        "the file of a sequence is empty"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(SEQUENCE_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.files.filter(|files| files.bytes() > 0)?;
        let wound = Wound::cut(site, 0, "the file cut to nothing");
        Some(
            wound
                .must(&["empty-sequence"])
                .may(&[&["pages-beyond-end"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
