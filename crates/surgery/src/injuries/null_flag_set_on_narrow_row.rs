//! A row of few columns claims a bitmap of nulls, and reads as nulls.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HASNULL;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct NullFlagSetOnNarrowRow;

impl Injury for NullFlagSetOnNarrowRow {
    fn name(&self) -> &'static str {
        "null-flag-set-on-narrow-row"
    }

    fn summary(&self) -> &'static str {
        "a row of few columns claims a bitmap of nulls, and reads as nulls"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            !row.tuple.has(HEAP_HASNULL) && (1..=8).contains(&row.tuple.attribute_count())
        })?;
        let mask = row.tuple.t_infomask() | HEAP_HASNULL;
        let wound = Wound::edit_row(site, &row, "HEAP_HASNULL set", |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(
            wound
                .must(&["bytes-behind-last-value"])
                .may(&[followers::ATTRIBUTES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
