//! A page of waiting entries of a GIN index counts one row more than it holds.

use pgclinic_format::build::put_u16;
use pgclinic_format::gin::{Opaque, PageKind};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinPendingCount;

impl Injury for GinPendingCount {
    fn name(&self) -> &'static str {
        "gin-pending-count"
    }

    fn summary(&self) -> &'static str {
        "a page of waiting entries of a GIN index counts a row that it does not hold"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        (opaque.kind()? == PageKind::Pending).then_some(())?;
        let at = usize::from(page.pd_special()) + 4;
        let rows = opaque.maxoff.checked_add(1)?;
        let wound = Wound::edit(site, format!("maxoff set to {rows}"), |page| {
            put_u16(page, at, rows)
        })?;
        Some(
            wound
                .must(&["gin-pending-page"])
                .may(&[&["gin-pending-list"]]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
