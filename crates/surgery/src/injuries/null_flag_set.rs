//! A row of many columns claims a bitmap of nulls that it does not have.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HASNULL;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct NullFlagSet;

impl Injury for NullFlagSet {
    fn name(&self) -> &'static str {
        "null-flag-set"
    }

    fn summary(&self) -> &'static str {
        "a row of many columns claims a bitmap of nulls that it does not have"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            !row.tuple.has(HEAP_HASNULL) && row.tuple.attribute_count() > 8
        })?;
        let mask = row.tuple.t_infomask() | HEAP_HASNULL;
        let wound = Wound::edit_row(site, &row, "HEAP_HASNULL set", |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["hoff-mismatch"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
