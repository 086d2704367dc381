//! A page with deleted rows says that everybody sees all of them.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_format::page::PD_ALL_VISIBLE;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Row, Site};
use crate::way_out;

/// See the module.
pub struct AllVisibleFlagSet;

impl Injury for AllVisibleFlagSet {
    fn name(&self) -> &'static str {
        "all-visible-flag-set"
    }

    fn summary(&self) -> &'static str {
        "a page with deleted rows says that everybody sees all of them"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let page = site.page()?;
        let hides = |row: &Row<'_>| {
            let counts = !row.tuple.has(HEAP_XMAX_INVALID)
                && !row.tuple.has(HEAP_XMAX_IS_MULTI)
                && !row.tuple.xmax_is_locked_only();
            counts && site.status(row.tuple.t_xmax()) == Some(XactStatus::Committed)
        };
        let flags = page.pd_flags();
        (flags & PD_ALL_VISIBLE == 0).then_some(())?;
        let row = site.row(seed, hides)?;
        let words = "PD_ALL_VISIBLE set on a page with deleted rows";
        let wound = Wound::edit(site, words, |page| {
            put_u16(page, 10, flags | PD_ALL_VISIBLE)
        })?;
        Some(wound.item(row.item).must(&["page-not-all-visible"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SET_RIGHT_BY_VACUUM
    }
}
