//! A TOAST chunk is said to be compressed itself.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE, is_plain};
use crate::way_out;

/// See the module.
pub struct ChunkCompressed;

impl Injury for ChunkCompressed {
    fn name(&self) -> &'static str {
        "chunk-compressed"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk is said to be compressed itself"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_plain)?;
        let at = value.range.start;
        let word = u32::try_from(value.range.len()).ok()? << 2 | 2;
        let wound = Wound::edit_row(
            site,
            &row,
            "header of chunk_data marked as compressed",
            |tuple| {
                put_u32(tuple, at, word);
            },
        )?;
        Some(
            wound
                .must(&["toasted-toast-chunk"])
                .may(&[&["compressed-value"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
