//! A GIN page names a right neighbour behind the end of the index.

use pgclinic_format::build::put_u32;
use pgclinic_format::gin::{Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinLinkBeyondEnd;

impl Injury for GinLinkBeyondEnd {
    fn name(&self) -> &'static str {
        "gin-link-beyond-end"
    }

    fn summary(&self) -> &'static str {
        "a GIN page names a right neighbour behind the end of the index"
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
        (!matches!(kind, PageKind::Meta | PageKind::Deleted)).then_some(())?;
        let at = usize::from(page.pd_special());
        let right = u32::try_from(site.blocks()).ok()?.checked_add(1000)?;
        let wound = Wound::edit(site, format!("rightlink set to {right}"), |page| {
            put_u32(page, at, right)
        })?;
        Some(wound.must(&["gin-link-beyond-end"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
