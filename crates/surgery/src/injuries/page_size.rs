//! The header claims another page size.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PageSize;

impl Injury for PageSize {
    fn name(&self) -> &'static str {
        "page-size"
    }

    fn summary(&self) -> &'static str {
        "the header claims another page size"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let size = if site.bytes.len() == 4096 { 8192 } else { 4096 };
        let version = u16::from(site.page()?.layout_version());
        let wound = Wound::edit(site, format!("page size set to {size}"), |page| {
            put_u16(page, 18, size | version)
        })?;
        Some(wound.must(&["wrong-page-size"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
