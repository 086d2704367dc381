//! A row says that a VACUUM FULL before 9.0 moved it away.

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{HEAP_MOVED, HEAP_MOVED_OFF, HEAP_XMIN_FROZEN};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct MovedFlagSet;

impl Injury for MovedFlagSet {
    fn name(&self) -> &'static str {
        "moved-flag-set"
    }

    fn summary(&self) -> &'static str {
        "a row says that a VACUUM FULL before 9.0 moved it away"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.checkpoint()?;
        let row = site.row(seed, |row| row.tuple.t_xmin().is_normal())?;
        let mask = row.tuple.t_infomask() & !HEAP_XMIN_FROZEN & !HEAP_MOVED | HEAP_MOVED_OFF;
        let words = "HEAP_MOVED_OFF set, its transaction set to 0, the hints of xmin cleared";
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, 8, 0);
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["moved-by-unknown-vacuum"]).may(&[
            followers::CHAINS,
            followers::FATES,
            followers::TUPLE_HEADER,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
