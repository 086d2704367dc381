//! A page denies what the visibility map says of it.

use pgclinic_format::build::put_u16;
use pgclinic_format::page::PD_ALL_VISIBLE;
use pgclinic_format::visibility_map::ALL_VISIBLE;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct AllVisibleFlagCleared;

impl Injury for AllVisibleFlagCleared {
    fn name(&self) -> &'static str {
        "all-visible-flag-cleared"
    }

    fn summary(&self) -> &'static str {
        "a page denies what the visibility map says of it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let flags = site.page()?.pd_flags();
        let said = site.checkpoint().is_some() && site.map_bits() & ALL_VISIBLE != 0;
        (said && flags & PD_ALL_VISIBLE != 0).then_some(())?;
        let words = "PD_ALL_VISIBLE cleared on a page that the visibility map calls all-visible";
        let wound = Wound::edit(site, words, |page| {
            put_u16(page, 10, flags & !PD_ALL_VISIBLE)
        })?;
        Some(wound.must(&["visibility-map-wrong"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SET_RIGHT_BY_VACUUM
    }
}
