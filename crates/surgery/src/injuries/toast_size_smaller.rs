//! A pointer to TOAST claims fewer bytes than the value has.

use pgclinic_format::build::put_u32;
use pgclinic_format::toast::ToastPointer;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// Fewer by so many.
const LESS: u32 = 10;

/// See the module.
pub struct ToastSizeSmaller;

impl Injury for ToastSizeSmaller {
    fn name(&self) -> &'static str {
        "toast-size-smaller"
    }

    fn summary(&self) -> &'static str {
        "a pointer to TOAST claims fewer bytes than the value has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;
        let at = value.range.start;
        let bytes = row.tuple.bytes().get(at + 2..)?;
        let pointer = ToastPointer::parse(bytes)?;
        // As many chunks as before.
        let in_last = pointer
            .va_extsize
            .checked_rem(site.cluster.build.toast_chunk)?;
        (in_last > LESS).then_some(())?;
        let size_and_method = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let words = format!("sizes {LESS} bytes smaller of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at + 6, size_and_method - LESS);
            if !pointer.is_compressed() {
                put_u32(tuple, at + 2, pointer.va_rawsize - LESS);
            }
        })?;
        Some(wound.must(&["toast-value-size"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
