//! A heap-only update is said to go on on another page.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_XMAX_INVALID, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HotUpdateLeavesPage;

impl Injury for HotUpdateLeavesPage {
    fn name(&self) -> &'static str {
        "hot-update-leaves-page"
    }

    fn summary(&self) -> &'static str {
        "a heap-only update is said to go on on another page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            row.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0
                && !row.tuple.has(HEAP_XMAX_INVALID)
                && row.tuple.t_infomask() & HEAP_XMIN_FROZEN != HEAP_XMIN_INVALID
        })?;
        let low = u16::try_from(row.tuple.t_ctid().block & 0xFFFF).ok()? ^ 1;
        let wound = Wound::edit_row(
            site,
            &row,
            "t_ctid of a heap-only update set to another block",
            |tuple| {
                put_u16(tuple, 14, low);
            },
        )?;
        Some(
            wound
                .must(&["hot-update-leaves-page"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
