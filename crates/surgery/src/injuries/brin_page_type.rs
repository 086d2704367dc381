//! A page of summaries of a BRIN index is marked as a page of the map.

use pgclinic_format::brin::{PAGE_REGULAR, PAGE_REVMAP, page_type};
use pgclinic_format::build::put_u16;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinPageType;

impl Injury for BrinPageType {
    fn name(&self) -> &'static str {
        "brin-page-type"
    }

    fn summary(&self) -> &'static str {
        "a page of summaries of a BRIN index is marked as a page of the map"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Brin)?;
        let page = site.page()?;
        (page_type(page)? == PAGE_REGULAR).then_some(())?;
        let at = usize::from(page.pd_special()) + 6;
        let words = format!("page type set to {PAGE_REVMAP:#06x}");
        let wound = Wound::edit(site, words, |page| put_u16(page, at, PAGE_REVMAP))?;
        Some(wound.must(&["brin-page-type"]).may(&[&["brin-map-entry"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
