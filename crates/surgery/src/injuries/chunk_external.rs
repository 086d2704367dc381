//! A TOAST chunk is said to be in TOAST itself.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE, is_plain};
use crate::way_out;

/// See the module.
pub struct ChunkExternal;

impl Injury for ChunkExternal {
    fn name(&self) -> &'static str {
        "chunk-external"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk is said to be in TOAST itself"
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
            "header of chunk_data replaced by that of a pointer to TOAST",
            |tuple| {
                put_u16(tuple, at, 0x1201);
            },
        )?;
        Some(
            wound
                .must(&["toasted-toast-chunk"])
                .may(&[&["toast-pointer"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
