//! A TOAST chunk has the number of its neighbour.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE};
use crate::way_out;

/// See the module.
pub struct ChunkNumberShifted;

impl Injury for ChunkNumberShifted {
    fn name(&self) -> &'static str {
        "chunk-number-shifted"
    }

    fn summary(&self) -> &'static str {
        "a TOAST chunk has the number of its neighbour"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |_, value| value.attribute == 2)?;
        let at = value.range.start;
        let bytes = row.tuple.bytes().get(at..)?.first_chunk()?;
        let number = u32::from_le_bytes(*bytes).checked_add(1)?;
        let wound = Wound::edit_row(site, &row, format!("chunk_seq set to {number}"), |tuple| {
            put_u32(tuple, at, number);
        })?;
        Some(wound.must(&["toast-value-incomplete"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
