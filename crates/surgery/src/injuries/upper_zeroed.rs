//! Pd_upper is zero, as on a page never used.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct UpperZeroed;

impl Injury for UpperZeroed {
    fn name(&self) -> &'static str {
        "upper-zeroed"
    }

    fn summary(&self) -> &'static str {
        "pd_upper is zero, as on a page never used"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let upper = site.page()?.pd_upper();
        let wound = Wound::edit(site, format!("pd_upper {upper} set to 0"), |page| {
            put_u16(page, 14, 0)
        })?;
        Some(wound.must(&["new-page-with-content"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
