//! The first column is said to begin 128 bytes later.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HoffLarger;

impl Injury for HoffLarger {
    fn name(&self) -> &'static str {
        "hoff-larger"
    }

    fn summary(&self) -> &'static str {
        "the first column is said to begin 128 bytes later"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let hoff = row.tuple.t_hoff().checked_add(128)?;
        let beyond: &[&str] = if usize::from(hoff) > row.tuple.bytes().len() {
            &["hoff-beyond-tuple"]
        } else {
            &[]
        };
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
                .must(beyond)
                .may(&[followers::ATTRIBUTES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
