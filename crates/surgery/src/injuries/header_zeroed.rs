//! The page header is all zeros, the rest of the page is there.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HeaderZeroed;

impl Injury for HeaderZeroed {
    fn name(&self) -> &'static str {
        "header-zeroed"
    }

    fn summary(&self) -> &'static str {
        "the page header is all zeros, the rest of the page is there"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(
            site,
            "the 24 bytes of the page header set to zero",
            |page| page.iter_mut().take(24).for_each(|byte| *byte = 0),
        )?;
        Some(
            wound
                .must(&["new-page-with-content"])
                .may(&[followers::HEADER]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
