//! A pointer to TOAST names another relation.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// See the module.
pub struct ToastRelation;

impl Injury for ToastRelation {
    fn name(&self) -> &'static str {
        "toast-relation"
    }

    fn summary(&self) -> &'static str {
        "a pointer to TOAST names another relation"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;
        let at = value.range.start;
        let other = site.relation?.toast ^ 0x0010_0000;
        let words = format!(
            "TOAST relation set to {other} of column {}",
            value.attribute
        );
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at + 14, other);
        })?;
        Some(wound.must(&["toast-pointer"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
