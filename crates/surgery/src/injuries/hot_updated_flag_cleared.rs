//! An update in place says that it was none.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HOT_UPDATED;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct HotUpdatedFlagCleared;

impl Injury for HotUpdatedFlagCleared {
    fn name(&self) -> &'static str {
        "hot-updated-flag-cleared"
    }

    fn summary(&self) -> &'static str {
        "an update in place says that it was none"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let updates = site.updates();
        let in_place: Vec<_> = updates
            .iter()
            .filter(|(old, _)| old.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0)
            .collect();
        let (row, _) = choose(&in_place, seed)?;
        let mask = row.tuple.t_infomask2() & !HEAP_HOT_UPDATED;
        let words = "HEAP_HOT_UPDATED cleared";
        let wound = Wound::edit_row(site, row, words, |tuple| put_u16(tuple, 18, mask))?;
        Some(wound.must(&["hot-flags-disagree"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
