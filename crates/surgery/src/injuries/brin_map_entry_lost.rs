//! The map of a BRIN index has lost the place of a summary.

use pgclinic_format::build::put_u16;

use crate::brin_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinMapEntryLost;

impl Injury for BrinMapEntryLost {
    fn name(&self) -> &'static str {
        "brin-map-entry-lost"
    }

    fn summary(&self) -> &'static str {
        "the map of a BRIN index has lost the place of a summary"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (index, at) = brin_site::place_in_map(site, seed)?;
        let words = format!("place {index} of the map emptied");
        let wound = Wound::edit(site, words, |page| put_u16(page, at, 0))?;
        Some(wound.must(&["brin-summary-unreferenced"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
