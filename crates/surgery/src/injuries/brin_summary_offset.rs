//! The values of a summary of a BRIN index begin elsewhere.

use pgclinic_format::LpFlags;
use pgclinic_format::brin::{PAGE_REGULAR, page_type};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
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
