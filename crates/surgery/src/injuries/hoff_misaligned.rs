//! The first column is said to begin at an odd offset.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HoffMisaligned;

impl Injury for HoffMisaligned {
    fn name(&self) -> &'static str {
        "hoff-misaligned"
    }

    fn summary(&self) -> &'static str {
        "the first column is said to begin at an odd offset"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let hoff = row
            .tuple
            .t_hoff()
            .checked_add_signed(if seed.is_multiple_of(2) { 3 } else { -3 })?;
        let wound = Wound::edit_row(site, &row, format!("t_hoff set to {hoff}"), |tuple| {
            tuple
                .iter_mut()
                .skip(22)
                .take(1)
                .for_each(|byte| *byte = hoff);
        })?;
        Some(
            wound
                .must(&["hoff-mismatch"])
                .may(&[&["hoff-beyond-tuple"], followers::ATTRIBUTES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
