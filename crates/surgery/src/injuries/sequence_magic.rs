//! The page of a sequence lost its magic number.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SequenceMagic;

impl Injury for SequenceMagic {
    fn name(&self) -> &'static str {
        "sequence-magic"
    }

    fn summary(&self) -> &'static str {
        "the page of a sequence lost its magic number"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(SEQUENCE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let at = usize::from(site.page()?.pd_special());
        let wound = Wound::edit(site, "the magic number set to 0x1718", |page| {
            put_u32(page, at, 0x1718)
        })?;
        Some(wound.must(&["sequence-magic"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
