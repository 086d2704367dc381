//! Pd_special lies behind the end of the page.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SpecialBeyondPage;

impl Injury for SpecialBeyondPage {
    fn name(&self) -> &'static str {
        "special-beyond-page"
    }

    fn summary(&self) -> &'static str {
        "pd_special lies behind the end of the page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let special = u16::try_from(site.bytes.len()).ok()?.checked_add(8)?;
        let wound = Wound::edit(site, format!("pd_special set to {special}"), |page| {
            put_u16(page, 16, special)
        })?;
        Some(wound.must(&["special-beyond-page"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
