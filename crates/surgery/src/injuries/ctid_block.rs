//! The next version of a row is said to be on another page.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CtidBlock;

impl Injury for CtidBlock {
    fn name(&self) -> &'static str {
        "ctid-block"
    }

    fn summary(&self) -> &'static str {
        "the next version of a row is said to be on another page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| row.tuple.t_infomask2() & HEAP_HOT_UPDATED == 0)?;
        let low = u16::try_from(row.tuple.t_ctid().block & 0xFFFF).ok()? ^ 1;
        let wound = Wound::edit_row(site, &row, "t_ctid set to another block", |tuple| {
            put_u16(tuple, 14, low);
        })?;
        Some(wound.blind("a row version may name any other place as its successor"))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
