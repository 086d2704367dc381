//! A summary of a BRIN index says that it is that of another range.

use pgclinic_format::LpFlags;
use pgclinic_format::brin::{PAGE_REGULAR, page_type};
use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
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
        site.method()
            .filter(|method| *method == AccessMethod::Brin)?;
        let page = site.page()?;
        (page_type(page)? == PAGE_REGULAR).then_some(())?;
        let summaries: Vec<_> = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
            .collect();
        let (item, pointer) = *choose(&summaries, seed)?;
        let at = usize::from(pointer.lp_off());

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
