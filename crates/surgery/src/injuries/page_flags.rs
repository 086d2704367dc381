//! Pd_flags has bits that do not exist.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PageFlags;

impl Injury for PageFlags {
    fn name(&self) -> &'static str {
        "page-flags"
    }

    fn summary(&self) -> &'static str {
        "pd_flags has bits that do not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let flags = site.page()?.pd_flags() | 0x0100 << (seed % 8);
        let wound = Wound::edit(site, format!("pd_flags set to {flags:#06x}"), |page| {
            put_u16(page, 10, flags)
        })?;
        Some(wound.must(&["invalid-page-flags"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
