//! A table was cut at the border of a block, its visibility map was not.

use crate::followers;
use crate::index_entries::{entries_to, has_complete_btree};
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct CutFile;

impl Injury for CutFile {
    fn name(&self) -> &'static str {
        "cut-file"
    }

    fn summary(&self) -> &'static str {
        "a table was cut at the border of a block, its visibility map was not"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let files = site.files.filter(|files| files.segments.len() == 1)?;
        let len = files.bytes();
        let marked = u64::from(site.last_marked()?);
        let left = 1 + seed.checked_rem(marked)?;
        let len = Some(left * u64::from(site.cluster.build.block_size)).filter(|cut| *cut < len)?;
        let wound = Wound::cut(site, len, format!("the file cut to {left} blocks"));
        // An index that would know rows there and knows none leaves only the map to be wrong.
        let proven = entries_to(site, left..u64::MAX) > 0 || !has_complete_btree(site);
        let root = proven.then_some("file-truncated");
        Some(
            wound
                .must(&["map-beyond-end"])
                .must(root.as_slice())
                .may(&[followers::SHORT_FILES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
