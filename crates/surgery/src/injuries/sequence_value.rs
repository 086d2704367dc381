//! A sequence stands at a number outside of its bounds.

use pgclinic_format::build::put_u32;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SequenceValue;

impl Injury for SequenceValue {
    fn name(&self) -> &'static str {
        "sequence-value"
    }

    fn summary(&self) -> &'static str {
        "a sequence stands at a number outside of its bounds"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(SEQUENCE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let own = site.catalog?.sequence(site.relation?.oid)?;
        let row = site.row(seed, |_| own.min > i64::MIN)?;
        let at = usize::from(row.tuple.t_hoff());
        let wound = Wound::edit_row(
            site,
            &row,
            "last_value set to -9223372036854775808",
            |tuple| {
                put_u32(tuple, at, 0);
                put_u32(tuple, at + 4, 0x8000_0000);
            },
        )?;
        Some(
            wound
                .may(&[followers::SEQUENCES])
                .must(&["sequence-beyond-bounds"]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
