//! The meta page of a GIN index counts other pages of waiting entries.

use pgclinic_format::build::put_u32;
use pgclinic_format::gin::{Meta, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinMetaPages;

impl Injury for GinMetaPages {
    fn name(&self) -> &'static str {
        "gin-meta-pages"
    }

    fn summary(&self) -> &'static str {
        "a GIN index counts pages of waiting entries that are not there"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        let meta = Meta::of(page).filter(|meta| meta.head != INVALID_BLOCK)?;
        (opaque.kind()? == PageKind::Meta).then_some(())?;
        let pages = meta.pending_pages.checked_add(3)?;
        let wound = Wound::edit(site, format!("nPendingPages set to {pages}"), |page| {
            put_u32(page, Meta::PENDING_PAGES_AT, pages)
        })?;
        Some(wound.must(&["gin-pending-list"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
