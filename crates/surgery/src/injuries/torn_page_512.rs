//! Only the first 512 bytes of a new page reached the disk.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, hoff_contradiction};
use crate::way_out;

/// See the module.
pub struct TornPage512;

impl Injury for TornPage512 {
    fn name(&self) -> &'static str {
        "torn-page-512"
    }

    fn summary(&self) -> &'static str {
        "only the first 512 bytes of a new page reached the disk"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let mut after = site.bytes.clone();
        after.get_mut(512..)?.fill(0);
        let seen = hoff_contradiction(&after)?;
        let wound = Wound::bytes(site, &after, "all bytes from 512 on set to zero")?;
        Some(wound.must(&[seen]).may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
