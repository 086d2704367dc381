//! A page in a tree of a GIN index has lost its right neighbour.

use pgclinic_format::build::put_u32;
use pgclinic_format::gin::{GIN_INCOMPLETE_SPLIT, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinRightLink;

impl Injury for GinRightLink {
    fn name(&self) -> &'static str {
        "gin-right-link"
    }

    fn summary(&self) -> &'static str {
        "a page of a GIN index has lost its right neighbour"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        let kind = opaque.kind()?;
        let in_tree = matches!(kind, PageKind::EntryLeaf | PageKind::PostingLeaf);
        (in_tree && !opaque.has(GIN_INCOMPLETE_SPLIT)).then_some(())?;
        let right = opaque.right()?;
        let at = usize::from(page.pd_special());
        let wound = Wound::edit(site, format!("rightlink {right} taken away"), |page| {
            put_u32(page, at, INVALID_BLOCK)
        })?;
        Some(wound.must(&["gin-tree-link"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
