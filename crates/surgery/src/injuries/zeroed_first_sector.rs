//! The first 512 bytes of a page are zeros.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct ZeroedFirstSector;

impl Injury for ZeroedFirstSector {
    fn name(&self) -> &'static str {
        "zeroed-first-sector"
    }

    fn summary(&self) -> &'static str {
        "the first 512 bytes of a page are zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let mut after = site.bytes.clone();
        after.get_mut(..512)?.fill(0);
        after
            .get(512..)?
            .iter()
            .any(|byte| *byte != 0)
            .then_some(())?;
        let wound = Wound::bytes(site, &after, "the first 512 bytes set to zero")?;
        Some(
            wound
                .must(&["new-page-with-content"])
                .may(&[followers::HEADER]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
