//! A GiST page is marked with flags that exclude each other.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::gist;
use crate::way_out;

/// See the module.
pub struct GistFlags;

impl Injury for GistFlags {
    fn name(&self) -> &'static str {
        "gist-flags"
    }

    fn summary(&self) -> &'static str {
        "a GiST page is marked with flags that exclude each other"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = gist(site)?;
        let at = usize::from(site.page()?.pd_special()) + 12;
        // Nothing of the root may be deleted; elsewhere an unfinished split excludes it.
        let flags = page.flags() | if site.block == 0 { 0x0002 } else { 0x000A };
        let words = format!("flags set to {flags:#06x}");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, flags))?;
        Some(wound.must(&["gist-page-flags"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
