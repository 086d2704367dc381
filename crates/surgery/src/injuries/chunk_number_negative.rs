//! A TOAST chunk has a negative number.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE};
use crate::way_out;

/// See the module.
pub struct ChunkNumberNegative;

impl Injury for ChunkNumberNegative {
    fn name(&self) -> &'static str {
        "chunk-number-negative"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk has a negative number"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |_, value| value.attribute == 2)?;
        let at = value.range.start;
        let number = 0x8000_0000 | u32::try_from(seed % 1000).ok()?;
        let wound = Wound::edit_row(
            site,
            &row,
            format!("chunk_seq set to {}", number.cast_signed()),
            |tuple| {
                put_u32(tuple, at, number);
            },
        )?;
        Some(wound.must(&["chunk-number-impossible"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
