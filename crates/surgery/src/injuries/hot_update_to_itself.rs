//! A row that was updated in place leads to itself.

use pgclinic_format::build::put_u16;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HotUpdateToItself;

impl Injury for HotUpdateToItself {
    fn name(&self) -> &'static str {
        "hot-update-to-itself"
    }

    fn summary(&self) -> &'static str {
        "a row that was updated in place leads to itself"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row_updated_in_place(seed)?;
        let words = "t_ctid of a row that was updated in place set to its own place";
        let item = row.item;
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 16, item))?;
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
