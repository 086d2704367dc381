//! A row with nulls lost the flag of its bitmap.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HASNULL;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct NullFlagCleared;

impl Injury for NullFlagCleared {
    fn name(&self) -> &'static str {
        "null-flag-cleared"
    }

    fn summary(&self) -> &'static str {
        "a row with nulls lost the flag of its bitmap"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| row.tuple.has(HEAP_HASNULL))?;
        let mask = row.tuple.t_infomask() & !HEAP_HASNULL;
        let seen = (row.tuple.t_hoff() != 24).then_some("hoff-mismatch");
        let wound = Wound::edit_row(site, &row, "HEAP_HASNULL cleared", |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.may(&[followers::ATTRIBUTES]).must_or_blind(
            seen,
            "the bitmap fits into the padding, and the values that are there may fit other columns",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
