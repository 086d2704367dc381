//! The meta page of a BRIN index says that a summary covers no page.

use pgclinic_format::brin::{Meta, PAGE_META, page_type};
use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BrinPagesPerRange;

impl Injury for BrinPagesPerRange {
    fn name(&self) -> &'static str {
        "brin-pages-per-range"
    }

    fn summary(&self) -> &'static str {
        "a BRIN index says that a summary covers no page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Brin)?;
        let page = site.page()?;
        (page_type(page)? == PAGE_META).then_some(())?;
        let wound = Wound::edit(site, "pagesPerRange set to 0", |page| {
            put_u32(page, Meta::PAGES_PER_RANGE_AT, 0)
        })?;
        Some(wound.must(&["brin-meta-page"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
