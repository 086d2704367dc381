//! A table page with a special space, which only other pages have.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SpecialSize;

impl Injury for SpecialSize {
    fn name(&self) -> &'static str {
        "special-size"
    }

    fn summary(&self) -> &'static str {
        "a table page with a special space, which only other pages have"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let special = page
            .pd_special()
            .checked_sub(8)
            .filter(|special| page.pd_upper() <= *special)?;
        let wound = Wound::edit(site, format!("pd_special set to {special}"), |page| {
            put_u16(page, 16, special)
        })?;
        Some(
            wound
                .must(&["special-size-mismatch"])
                .may(&[&["item-beyond-page"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
