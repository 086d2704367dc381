//! The last third of the page header is zeros.

use pgclinic_format::build::put_u32;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HeaderTailZeroed;

impl Injury for HeaderTailZeroed {
    fn name(&self) -> &'static str {
        "header-tail-zeroed"
    }

    fn summary(&self) -> &'static str {
        "the last third of the page header is zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(
            site,
            "bytes 16 to 23 of the page header set to zero",
            |page| {
                put_u32(page, 16, 0);
                put_u32(page, 20, 0);
            },
        )?;
        Some(
            wound
                .must(&[
                    "upper-beyond-special",
                    "wrong-page-size",
                    "wrong-layout-version",
                ])
                .may(&[followers::HEADER]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_HEADER
    }
}
