//! The file of a table is gone.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_FILE, Site};
use crate::way_out;

/// See the module.
pub struct LostFile;

impl Injury for LostFile {
    fn name(&self) -> &'static str {
        "lost-file"
    }

    fn summary(&self) -> &'static str {
        "the file of a table is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_FILE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.files
            .filter(|files| files.bytes() > 0 && files.segments.len() == 1)?;
        Some(Wound::remove(site.path.clone(), "the file removed").must(&["missing-file"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::FILE
    }
}
