//! A row is not frozen on a page that the visibility map calls frozen.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID};
use pgclinic_format::visibility_map::ALL_FROZEN;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct FrozenRowThawed;

impl Injury for FrozenRowThawed {
    fn name(&self) -> &'static str {
        "frozen-row-thawed"
    }

    fn summary(&self) -> &'static str {
        "a row is not frozen on a page that the visibility map calls frozen"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let said = site.checkpoint().is_some() && site.map_bits() & ALL_FROZEN != 0;
        said.then_some(())?;
        let row = site.row(seed, |row| {
            row.tuple.has(HEAP_XMIN_FROZEN) && row.tuple.t_xmin().is_normal()
        })?;
        let mask = row.tuple.t_infomask() & !HEAP_XMIN_INVALID;
        let words = "HEAP_XMIN_INVALID cleared, so that xmin is no longer frozen";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 20, mask))?;
        Some(
            wound
                .must(&["visibility-map-wrong"])
                .may(&[&["xmin-before-freeze"], followers::FATES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
