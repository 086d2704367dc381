//! T_infomask2 has bits that do not exist.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct Infomask2UnusedBits;

impl Injury for Infomask2UnusedBits {
    fn name(&self) -> &'static str {
        "infomask2-unused-bits"
    }

    fn summary(&self) -> &'static str {
        "t_infomask2 has bits that do not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let mask = row.tuple.t_infomask2() | 0x0800 << (seed % 2);
        let wound = Wound::edit_row(
            site,
            &row,
            format!("t_infomask2 set to {mask:#06x}"),
            |tuple| {
                put_u16(tuple, 18, mask);
            },
        )?;
        Some(wound.must(&["unused-infomask-bits"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
