//! The last entry of an inner GiST page is gone.

use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::gist::GistPage;

use crate::followers::INDEX_TREES;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::gist_downlinks;
use crate::way_out;

/// See the module.
pub struct GistChildLost;

impl Injury for GistChildLost {
    fn name(&self) -> &'static str {
        "gist-child-lost"
    }

    fn summary(&self) -> &'static str {
        "the last entry of an inner GiST page is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let items = gist_downlinks(site)?;
        let last = items.last()?;
        let child = last.tuple.t_tid().block;
        let bytes = site.other_block(child)?;
        let full = Page::parse(&bytes).and_then(GistPage::parse)?.item_count() > 0;
        let lower = site.page()?.pd_lower().checked_sub(4).filter(|_| full)?;
        let words = format!("pd_lower set to {lower}, before the entry for block {child}");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, 12, lower))?;
        Some(wound.must(&["gist-page-unreachable"]).may(&[INDEX_TREES]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
