//! Pd_upper lies behind pd_special.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct UpperBeyondSpecial;

impl Injury for UpperBeyondSpecial {
    fn name(&self) -> &'static str {
        "upper-beyond-special"
    }

    fn summary(&self) -> &'static str {
        "pd_upper lies behind pd_special"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let upper = site.page()?.pd_special().checked_add(8)?;
        let wound = Wound::edit(site, format!("pd_upper set to {upper}"), |page| {
            put_u16(page, 14, upper)
        })?;
        Some(wound.must(&["upper-beyond-special"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
