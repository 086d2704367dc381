//! A row claims one attribute less than it holds.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_HASNULL, HEAP_XMIN_COMMITTED};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct AttributeCountSmaller;

impl Injury for AttributeCountSmaller {
    fn name(&self) -> &'static str {
        "attribute-count-smaller"
    }

    fn summary(&self) -> &'static str {
        "a row claims one attribute less than it holds"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            row.tuple.attribute_count() > 1
                && !row.tuple.has(HEAP_HASNULL)
                && row.tuple.has(HEAP_XMIN_COMMITTED)
        })?;
        let mask = row.tuple.t_infomask2() - 1;
        let words = "attribute count lowered by one";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 18, mask))?;
        Some(
            wound
                .must(&["bytes-behind-last-value"])
                .may(&[followers::SHAPE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
