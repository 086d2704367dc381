//! A row was updated in place by nobody.

use pgclinic_format::build::put_u32;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HotUpdateWithoutXmax;

impl Injury for HotUpdateWithoutXmax {
    fn name(&self) -> &'static str {
        "hot-update-without-xmax"
    }

    fn summary(&self) -> &'static str {
        "a row was updated in place by nobody"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row_updated_in_place(seed)?;
        let words = "t_xmax of a row that was updated in place set to 0";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u32(tuple, 4, 0))?;
        Some(
            wound
                .must(&["hot-update-leads-nowhere"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
