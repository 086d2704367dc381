//! A leaf of keys is also marked as a page of waiting entries.

use pgclinic_format::build::put_u16;
use pgclinic_format::gin::{GIN_LIST, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinPageFlags;

impl Injury for GinPageFlags {
    fn name(&self) -> &'static str {
        "gin-page-flags"
    }

    fn summary(&self) -> &'static str {
        "the flags of a GIN page contradict each other"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::EntryLeaf).then_some(())?;
        let at = usize::from(page.pd_special()) + 6;
        let flags = opaque.flags | GIN_LIST;
        let wound = Wound::edit(site, format!("flags set to {flags:#06x}"), |page| {
            put_u16(page, at, flags)
        })?;
        Some(wound.must(&["gin-page-flags"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
