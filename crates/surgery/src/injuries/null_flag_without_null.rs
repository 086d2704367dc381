//! A row has a bitmap of nulls that names none.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEADER_BYTES, HEAP_HASNULL, HEAP_XMIN_COMMITTED};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct NullFlagWithoutNull;

impl Injury for NullFlagWithoutNull {
    fn name(&self) -> &'static str {
        "null-flag-without-null"
    }

    fn summary(&self) -> &'static str {
        "a row has a bitmap of nulls that names none"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            !row.tuple.has(HEAP_HASNULL)
                && (1..=8).contains(&row.tuple.attribute_count())
                && row.tuple.has(HEAP_XMIN_COMMITTED)
        })?;
        let mask = row.tuple.t_infomask() | HEAP_HASNULL;
        let words = "HEAP_HASNULL set, with a bitmap of ones";
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u16(tuple, 20, mask);
            if let Some(bitmap) = tuple.get_mut(HEADER_BYTES) {
                *bitmap = 0xFF;
            }
        })?;
        Some(wound.must(&["null-flag-without-null"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::NOTHING
    }
}
