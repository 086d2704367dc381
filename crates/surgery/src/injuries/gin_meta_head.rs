//! The meta page of a GIN index names another head of the list of waiting entries.

use pgclinic_format::build::put_u32;
use pgclinic_format::gin::{Meta, Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::INVALID_BLOCK;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinMetaHead;

impl Injury for GinMetaHead {
    fn name(&self) -> &'static str {
        "gin-meta-head"
    }

    fn summary(&self) -> &'static str {
        "the list of waiting entries of a GIN index begins elsewhere"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::Meta).then_some(())?;
        let head = match Meta::of(page)?.head {
            INVALID_BLOCK => 1,
            _ => INVALID_BLOCK,
        };
        let wound = Wound::edit(site, format!("head set to {head}"), |page| {
            put_u32(page, Meta::HEAD_AT, head)
        })?;
        Some(wound.must(&["gin-meta-page"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
