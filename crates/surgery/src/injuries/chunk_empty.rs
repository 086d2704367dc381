//! A TOAST chunk holds nothing.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE, is_plain};
use crate::way_out;

/// See the module.
pub struct ChunkEmpty;

impl Injury for ChunkEmpty {
    fn name(&self) -> &'static str {
        "chunk-empty"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk holds nothing"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_plain)?;
        let at = value.range.start;

        let wound = Wound::edit_row(
            site,
            &row,
            "length of chunk_data set to its header alone",
            |tuple| {
                put_u32(tuple, at, 4 << 2);
            },
        )?;
        Some(wound.must(&["chunk-size-impossible"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
