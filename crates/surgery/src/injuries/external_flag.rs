//! A row with a pointer to TOAST says that it has none.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// See the module.
pub struct ExternalFlag;

impl Injury for ExternalFlag {
    fn name(&self) -> &'static str {
        "external-flag"
    }

    fn summary(&self) -> &'static str {
        "a row with a pointer to TOAST says that it has none"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;

        let mask = row.tuple.t_infomask() & !HEAP_HASEXTERNAL;
        let words = format!(
            "HEAP_HASEXTERNAL cleared, in spite of column {}",
            value.attribute
        );
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["toast-pointer"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
