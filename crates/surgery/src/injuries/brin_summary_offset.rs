//! The values of a summary of a BRIN index begin elsewhere.

use crate::brin_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinSummaryOffset;

impl Injury for BrinSummaryOffset {
    fn name(&self) -> &'static str {
        "brin-summary-offset"
    }

    fn summary(&self) -> &'static str {
        "the values of a summary of a BRIN index begin elsewhere"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (item, at) = brin_site::summary(site, seed)?;
        let words = format!("the values of summary {item} begin eight bytes later");
        let wound = Wound::edit(site, words, |page| {
            if let Some(info) = page.get_mut(at + 4) {
                *info = *info & 0xE0 | ((*info & 0x1F) + 8);
            }
        })?;
        Some(wound.item(item).must(&["brin-summary"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
