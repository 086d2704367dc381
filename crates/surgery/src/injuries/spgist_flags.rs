//! A root of an SP-GiST index is marked as the root of the other tree.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::spgist;
use crate::way_out;

/// See the module.
pub struct SpgistFlags;

impl Injury for SpgistFlags {
    fn name(&self) -> &'static str {
        "spgist-flags"
    }

    fn summary(&self) -> &'static str {
        "a root of an SP-GiST index is marked as the root of the other tree"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = spgist(site).filter(|_| matches!(site.block, 1 | 2))?;
        let at = usize::from(site.page()?.pd_special());
        let flags = page.flags() ^ 0x0008;
        let words = format!("flags set to {flags:#06x}");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, flags))?;
        Some(wound.must(&["spgist-page-flags"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
