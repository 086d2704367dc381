//! A page of a table is all zeros, as one never used, and no index leads to it.

use crate::index_entries::nothing_leads_to;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct ZeroedPageUnseen;

impl Injury for ZeroedPageUnseen {
    fn name(&self) -> &'static str {
        "zeroed-page-unseen"
    }

    fn summary(&self) -> &'static str {
        "a page is all zeros, as one never used, and no index leads to it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let block = u64::from(site.block);
        nothing_leads_to(site, block..block + 1).then_some(())?;
        let wound = Wound::edit(site, "the whole page set to zero", |page| page.fill(0))?;
        let marked = site.checkpoint().is_some() && site.map_bits() != 0;
        Some(wound.must_or_blind(
            marked.then_some("zeroed-page-marked-visible"),
            "a page of zeros is legal anywhere: it is what a table grows by, and no index knows better",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
