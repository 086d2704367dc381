//! Pd_special is no multiple of eight.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SpecialMisaligned;

impl Injury for SpecialMisaligned {
    fn name(&self) -> &'static str {
        "special-misaligned"
    }

    fn summary(&self) -> &'static str {
        "pd_special is no multiple of eight"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let special = site.page()?.pd_special().checked_sub(4)?;
        let wound = Wound::edit(site, format!("pd_special set to {special}"), |page| {
            put_u16(page, 16, special)
        })?;
        Some(
            wound
                .must(&["special-misaligned"])
                .may(&[&["upper-beyond-special"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
