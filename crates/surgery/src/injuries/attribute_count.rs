//! A row claims 2047 attributes.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_NATTS_MASK;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct AttributeCount;

impl Injury for AttributeCount {
    fn name(&self) -> &'static str {
        "attribute-count"
    }

    fn summary(&self) -> &'static str {
        "a row claims 2047 attributes"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let mask = row.tuple.t_infomask2() | HEAP_NATTS_MASK;
        let wound = Wound::edit_row(site, &row, "attribute count set to 2047", |tuple| {
            put_u16(tuple, 18, mask);
        })?;
        Some(
            wound
                .must(&["too-many-attributes"])
                .may(&[followers::ATTRIBUTES, &["hoff-mismatch"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
