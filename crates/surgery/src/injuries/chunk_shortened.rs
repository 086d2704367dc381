//! A TOAST chunk lost its last bytes.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE, is_plain};
use crate::way_out;

/// See the module.
pub struct ChunkShortened;

impl Injury for ChunkShortened {
    fn name(&self) -> &'static str {
        "chunk-shortened"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk lost its last bytes"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_plain)?;
        let at = value.range.start;
        let len = u32::try_from(value.range.len())
            .ok()?
            .checked_sub(10)
            .filter(|len| *len > 10)?;
        let wound = Wound::edit_row(
            site,
            &row,
            "length of chunk_data set to 10 bytes less",
            |tuple| {
                put_u32(tuple, at, len << 2);
            },
        )?;
        Some(wound.must(&["bytes-behind-last-value"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
