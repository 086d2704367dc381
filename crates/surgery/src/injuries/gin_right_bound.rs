//! A page of row numbers of a GIN index reaches further than the page above says.

use pgclinic_format::build::put_u16;
use pgclinic_format::gin::{Opaque, PageKind, right_bound};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinRightBound;

impl Injury for GinRightBound {
    fn name(&self) -> &'static str {
        "gin-right-bound"
    }

    fn summary(&self) -> &'static str {
        "a page of row numbers of a GIN index reaches further than the page above says"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::PostingLeaf).then_some(())?;
        opaque.right()?;
        let bound = right_bound(page)?;
        let offset = bound.offset.checked_add(1)?;
        let words = format!("the right bound {bound} given the row number {offset}");
        let wound = Wound::edit(site, words, |page| put_u16(page, 28, offset))?;
        Some(wound.must(&["gin-row-order"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
