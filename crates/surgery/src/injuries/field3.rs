//! The command number of a row is another one.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct Field3;

impl Injury for Field3 {
    fn name(&self) -> &'static str {
        "field3"
    }

    fn summary(&self) -> &'static str {
        "the command number of a row is another one"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let field3 = row.tuple.t_field3() ^ 0x5A5A_5A5A;
        let wound = Wound::edit_row(site, &row, format!("t_field3 set to {field3}"), |tuple| {
            put_u32(tuple, 8, field3);
        })?;
        Some(wound.blind("nothing reads the command number of a finished transaction"))
    }

    fn way_out(&self) -> &'static str {
        way_out::NOTHING
    }
}
