//! Pd_lower lies behind pd_upper.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LowerBeyondUpper;

impl Injury for LowerBeyondUpper {
    fn name(&self) -> &'static str {
        "lower-beyond-upper"
    }

    fn summary(&self) -> &'static str {
        "pd_lower lies behind pd_upper"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let lower = site.page()?.pd_upper().checked_add(8)?;
        let wound = Wound::edit(site, format!("pd_lower set to {lower}"), |page| {
            put_u16(page, 12, lower)
        })?;
        Some(wound.must(&["lower-beyond-upper"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
