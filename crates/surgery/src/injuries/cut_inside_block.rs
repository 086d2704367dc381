//! A table was cut in the middle of a block.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct CutInsideBlock;

impl Injury for CutInsideBlock {
    fn name(&self) -> &'static str {
        "cut-inside-block"
    }

    fn summary(&self) -> &'static str {
        "a table was cut in the middle of a block"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let files = site.files.filter(|files| files.segments.len() == 1)?;
        let len = files.bytes();
        let len = len.checked_sub(1 + seed % 1000)?;
        let wound = Wound::cut(site, len, format!("the file cut to {len} bytes"));
        Some(
            wound
                .must(&["partial-block"])
                .may(&[followers::SHORT_FILES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
