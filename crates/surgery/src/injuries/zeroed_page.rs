//! A page is all zeros, as one never used.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct ZeroedPage;

impl Injury for ZeroedPage {
    fn name(&self) -> &'static str {
        "zeroed-page"
    }

    fn summary(&self) -> &'static str {
        "a page is all zeros, as one never used"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "the whole page set to zero", |page| page.fill(0))?;
        let marked = site.checkpoint().is_some() && site.map_bits() != 0;
        Some(wound.must_or_blind(
            marked.then_some("zeroed-page-marked-visible"),
            "a page of zeros is legal anywhere: it is what a table grows by",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
