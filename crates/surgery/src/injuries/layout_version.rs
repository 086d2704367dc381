//! The header claims a layout version that does not exist.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LayoutVersion;

impl Injury for LayoutVersion {
    fn name(&self) -> &'static str {
        "layout-version"
    }

    fn summary(&self) -> &'static str {
        "the header claims a layout version that does not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let wound = Wound::edit(site, "layout version set to 5", |bytes| {
            put_u16(bytes, 18, page.page_size() | 5)
        })?;
        Some(wound.must(&["wrong-layout-version"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
