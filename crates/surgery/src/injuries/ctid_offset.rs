//! The next version of a row is at a line pointer that no page has.

use pgclinic_format::build::put_u16;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CtidOffset;

impl Injury for CtidOffset {
    fn name(&self) -> &'static str {
        "ctid-offset"
    }

    fn summary(&self) -> &'static str {
        "the next version of a row is at a line pointer that no page has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let offset = if seed.is_multiple_of(2) { 0 } else { 0x7FFF };
        let row = site.row(seed, |_| true)?;

        let wound = Wound::edit_row(
            site,
            &row,
            format!("line pointer number of t_ctid set to {offset}"),
            |tuple| {
                put_u16(tuple, 16, offset);
            },
        )?;
        Some(wound.must(&["ctid-impossible"]).may(&[followers::CHAINS]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
