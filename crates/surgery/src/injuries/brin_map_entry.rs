//! The map of a BRIN index leads to a place where no summary is.

use pgclinic_format::build::put_u16;

use crate::brin_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinMapEntry;

impl Injury for BrinMapEntry {
    fn name(&self) -> &'static str {
        "brin-map-entry"
    }

    fn summary(&self) -> &'static str {
        "the map of a BRIN index leads to a place where no summary is"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (index, at) = brin_site::place_in_map(site, seed)?;
        let words = format!("place {index} of the map leads to summary 2000 of its page");
        let wound = Wound::edit(site, words, |page| put_u16(page, at, 2000))?;
        let wound = wound.must(&["brin-map-entry"]);
        Some(wound.may(&[&["brin-summary-unreferenced"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
