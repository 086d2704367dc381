//! The mark of its kind on an index page is another one.

use pgclinic_format::Page;
use pgclinic_format::build::put_u16;
use pgclinic_format::index_page::page_kind_fault;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct IndexPageId;

impl Injury for IndexPageId {
    fn name(&self) -> &'static str {
        "index-page-id"
    }

    fn summary(&self) -> &'static str {
        "the mark of its kind on an index page is another one"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let method = site.method()?;
        let mut after = site.bytes.clone();
        let at = after.len().checked_sub(2)?;
        put_u16(&mut after, at, 0xFFFF);
        page_kind_fault(method, Page::parse(&after)?, site.block)?;
        let wound = Wound::bytes(
            site,
            &after,
            "the last two bytes of the special space set to ffff",
        )?;
        Some(wound.must(&["index-page-kind"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
