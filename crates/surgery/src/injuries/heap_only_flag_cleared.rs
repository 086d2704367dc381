//! The row that a redirect leads to is no longer heap-only.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_ONLY_TUPLE;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HeapOnlyFlagCleared;

impl Injury for HeapOnlyFlagCleared {
    fn name(&self) -> &'static str {
        "heap-only-flag-cleared"
    }

    fn summary(&self) -> &'static str {
        "the row that a redirect leads to is no longer heap-only"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let targets = site.redirect_targets();
        let row = site.row(seed, |row| {
            targets.contains(&row.item) && row.tuple.t_infomask2() & HEAP_ONLY_TUPLE != 0
        })?;
        let mask = row.tuple.t_infomask2() & !HEAP_ONLY_TUPLE;
        let words = "HEAP_ONLY_TUPLE cleared behind a redirect";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 18, mask))?;
        Some(
            wound
                .must(&["redirect-to-indexed-row"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
