//! A page of a table is all zeros, as one never used, and an index leads to its rows.

use crate::index_entries::entries_to;
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
        "a page is all zeros, as one never used, and an index leads to its rows"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let block = u64::from(site.block);
        (site.checkpoint().is_some() && entries_to(site, block..block + 1) > 0).then_some(())?;
        let wound = Wound::edit(site, "the whole page set to zero", |page| page.fill(0))?;
        let marked = (site.map_bits() != 0).then_some("zeroed-page-marked-visible");
        Some(wound.must(&["zeroed-page"]).must(marked.as_slice()))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
