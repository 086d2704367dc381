//! A GiST page names a right neighbour behind the end of the index.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::gist;
use crate::way_out;

/// See the module.
pub struct GistRightLink;

impl Injury for GistRightLink {
    fn name(&self) -> &'static str {
        "gist-right-link"
    }

    fn summary(&self) -> &'static str {
        "a GiST page names a right neighbour behind the end of the index"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        gist(site).filter(|_| site.block != 0)?;
        let at = usize::from(site.page()?.pd_special()) + 8;
        let right = u32::try_from(site.blocks()).ok()?.checked_add(1000)?;
        let words = format!("rightlink set to {right}");
        let wound = Wound::edit(site, words, |bytes| put_u32(bytes, at, right))?;
        Some(wound.must(&["gist-link-beyond-end"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
