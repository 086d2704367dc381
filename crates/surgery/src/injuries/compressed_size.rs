//! A value compressed in its row claims an impossible size.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_compressed};
use crate::way_out;

/// See the module.
pub struct CompressedSize;

impl Injury for CompressedSize {
    fn name(&self) -> &'static str {
        "compressed-size"
    }

    fn summary(&self) -> &'static str {
        "a value compressed in its row claims an impossible size"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_compressed)?;
        let at = value.range.start;

        let words = format!("raw size set to ffffffff of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at + 4, u32::MAX);
        })?;
        Some(wound.must(&["compressed-value"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
