//! A pointer to TOAST claims more stored bytes than the value has.

use pgclinic_format::build::put_u32;
use pgclinic_format::toast::ToastPointer;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// See the module.
pub struct ToastSize;

impl Injury for ToastSize {
    fn name(&self) -> &'static str {
        "toast-size"
    }

    fn summary(&self) -> &'static str {
        "a pointer to TOAST claims more stored bytes than the value has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;
        let at = value.range.start;
        let pointer = ToastPointer::parse(row.tuple.bytes().get(at + 2..)?)?;
        let size = pointer
            .va_rawsize
            .checked_add(1000)
            .filter(|size| *size < 1 << 30)?;
        let words = format!("stored size set to {size} of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at + 6, size);
        })?;
        Some(wound.must(&["toast-pointer"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
