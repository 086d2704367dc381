//! An SP-GiST page counts placeholders that are not there.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::spgist;
use crate::way_out;

/// See the module.
pub struct SpgistCounts;

impl Injury for SpgistCounts {
    fn name(&self) -> &'static str {
        "spgist-counts"
    }

    fn summary(&self) -> &'static str {
        "an SP-GiST page counts placeholders that are not there"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = spgist(site)?;
        let at = usize::from(site.page()?.pd_special()) + 4;
        let count = page.placeholder_count().checked_add(7)?;
        let words = format!("the number of placeholders set to {count}");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, count))?;
        Some(wound.must(&["spgist-tuple-counts"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
