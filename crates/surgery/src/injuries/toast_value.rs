//! A pointer to TOAST names another value.

use pgclinic_format::build::put_u32;
use pgclinic_format::toast::ToastPointer;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// See the module.
pub struct ToastValue;

impl Injury for ToastValue {
    fn name(&self) -> &'static str {
        "toast-value"
    }

    fn summary(&self) -> &'static str {
        "a pointer to TOAST names another value"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;
        let at = value.range.start;
        let pointer = ToastPointer::parse(row.tuple.bytes().get(at + 2..)?)?;
        let other = pointer.va_valueid ^ 0x4000_0000;
        let words = format!("value id set to {other} of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at + 10, other);
        })?;
        Some(wound.must(&["toast-value-missing", "toast-value-orphaned"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
