//! A summary of a BRIN index says that it is that of another range.

use pgclinic_format::build::put_u32;

use crate::brin_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinSummaryRange;

impl Injury for BrinSummaryRange {
    fn name(&self) -> &'static str {
        "brin-summary-range"
    }

    fn summary(&self) -> &'static str {
        "a summary of a BRIN index says that it is that of another range"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (item, at) = brin_site::summary(site, seed)?;
        let range = 1 << 30;
        let words = format!("summary {item} given to the range from block {range}");
        let wound = Wound::edit(site, words, |page| put_u32(page, at, range))?;
        let wound = wound.item(item).must(&["brin-map-entry"]);
        Some(wound.may(&[&["brin-summary-unreferenced", "brin-summary"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
