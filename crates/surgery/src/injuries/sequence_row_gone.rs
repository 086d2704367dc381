//! The row of a sequence is gone.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SequenceRowGone;

impl Injury for SequenceRowGone {
    fn name(&self) -> &'static str {
        "sequence-row-gone"
    }

    fn summary(&self) -> &'static str {
        "the row of a sequence is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(SEQUENCE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "line pointer 1 set to LP_UNUSED", |page| {
            put_u32(page, 24, 0)
        })?;
        Some(wound.item(1).must(&["sequence-tuple"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
