//! The highest value of a summary of a BRIN index is its lowest one.

use pgclinic_format::LpFlags;
use pgclinic_format::brin::{BrinTuple, PAGE_REGULAR, page_type};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct BrinSummaryNarrowed;

impl Injury for BrinSummaryNarrowed {
    fn name(&self) -> &'static str {
        "brin-summary-narrowed"
    }

    fn summary(&self) -> &'static str {
        "a summary of a BRIN index leaves out rows of its range"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Brin)?;
        let page = site.page()?;
        (page_type(page)? == PAGE_REGULAR).then_some(())?;
        let class = &site.relation?.index.as_ref()?.classes.first()?.name;
        (class == "int4_minmax_ops").then_some(())?;
        let summaries: Vec<_> = page
            .line_pointers()
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Normal)
            .filter_map(|(item, pointer)| {
                let summary = BrinTuple::parse(page.item(pointer)?)?;
                let at = usize::from(pointer.lp_off()) + summary.data_at();
                let differ = page.bytes().get(at..at + 4)? != page.bytes().get(at + 4..at + 8)?;
                (!summary.has_nulls() && !summary.is_placeholder() && differ).then_some((item, at))
            })
            .collect();
        let (item, at) = *choose(&summaries, seed)?;
        let words = format!("the highest value of summary {item} set to the lowest");
        let wound = Wound::edit(site, words, |page| page.copy_within(at..at + 4, at + 4))?;
        Some(wound.item(item).must(&["brin-summary-misses-row"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
