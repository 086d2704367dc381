//! A row with text says that all its values have a fixed width.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_HASVARWIDTH, HEAP_XMIN_COMMITTED};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct VarwidthFlagCleared;

impl Injury for VarwidthFlagCleared {
    fn name(&self) -> &'static str {
        "varwidth-flag-cleared"
    }

    fn summary(&self) -> &'static str {
        "a row with text says that all its values have a fixed width"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            row.tuple.has(HEAP_HASVARWIDTH) && row.tuple.has(HEAP_XMIN_COMMITTED)
        })?;
        let mask = row.tuple.t_infomask() & !HEAP_HASVARWIDTH;
        let wound = Wound::edit_row(site, &row, "HEAP_HASVARWIDTH cleared", |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["varwidth-flag-wrong"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
