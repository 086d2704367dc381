//! A row that was inserted says that no index knows it.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_ONLY_TUPLE, HEAP_UPDATED};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HeapOnlyFlagSet;

impl Injury for HeapOnlyFlagSet {
    fn name(&self) -> &'static str {
        "heap-only-flag-set"
    }

    fn summary(&self) -> &'static str {
        "a row that was inserted says that no index knows it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let targets = site.redirect_targets();
        let row = site.row(seed, |row| {
            let frozen = row.tuple.xmin_is_frozen() && row.tuple.t_xmin().is_normal();
            row.tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0
                && !row.tuple.has(HEAP_UPDATED)
                && !targets.contains(&row.item)
                && (frozen || site.status(row.tuple.t_xmin()) == Some(XactStatus::Committed))
        })?;
        let mask = row.tuple.t_infomask2() | HEAP_ONLY_TUPLE;
        let words = "HEAP_ONLY_TUPLE set on a row that was inserted";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 18, mask))?;
        Some(wound.must(&["heap-only-not-updated", "heap-only-without-chain"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
