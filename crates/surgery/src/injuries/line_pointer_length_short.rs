//! The length in a line pointer ends inside of a value.

use pgclinic_format::build::put_u32;
use pgclinic_format::{LinePointer, LpFlags};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, Value};
use crate::way_out;

/// See the module.
pub struct LinePointerLengthShort;

impl Injury for LinePointerLengthShort {
    fn name(&self) -> &'static str {
        "line-pointer-length-short"
    }

    fn summary(&self) -> &'static str {
        "the length in a line pointer ends inside of a value"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        // The first value is a number of 4 or 8 bytes, and half of it stays.
        let wide = |value: &Value| value.attribute == 1 && value.column.attlen >= 4;
        let (row, value) = site.value(seed, |_, value| wide(value))?;
        let half = value.range.start + value.range.len() / 2;
        let len = u16::try_from(half).ok()?;
        let pointer = LinePointer::new(row.pointer.lp_off(), LpFlags::Normal, len);
        let words = format!("lp_len of line pointer {} set to {len}", row.item);
        let wound = Wound::edit(site, words, |page| {
            put_u32(page, Site::pointer_at(row.item), pointer.0);
        })?;
        Some(wound.item(row.item).must(&["attribute-beyond-tuple"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::LINE_POINTER
    }
}
