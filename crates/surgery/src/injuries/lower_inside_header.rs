//! Pd_lower lies inside the page header.

use pgclinic_format::build::put_u16;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LowerInsideHeader;

impl Injury for LowerInsideHeader {
    fn name(&self) -> &'static str {
        "lower-inside-header"
    }

    fn summary(&self) -> &'static str {
        "pd_lower lies inside the page header"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let lower = u16::try_from(seed % 24).ok()?;
        let wound = Wound::edit(site, format!("pd_lower set to {lower}"), |page| {
            put_u16(page, 12, lower)
        })?;
        Some(
            wound
                .must(&["lower-inside-header"])
                .may(&[followers::SEQUENCES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
