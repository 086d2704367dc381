//! A pointer to TOAST has a tag that is never stored.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, is_external};
use crate::way_out;

/// See the module.
pub struct VarlenaTag;

impl Injury for VarlenaTag {
    fn name(&self) -> &'static str {
        "varlena-tag"
    }

    fn summary(&self) -> &'static str {
        "a pointer to TOAST has a tag that is never stored"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_external)?;
        let at = value.range.start;

        let words = format!("tag set to 3 in the pointer of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            tuple
                .iter_mut()
                .skip(at + 1)
                .take(1)
                .for_each(|byte| *byte = 3);
        })?;
        Some(wound.must(&["varlena-tag"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
