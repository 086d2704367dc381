//! A btree page names a right neighbour behind the end of the index.

use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BtreeSibling;

impl Injury for BtreeSibling {
    fn name(&self) -> &'static str {
        "btree-sibling"
    }

    fn summary(&self) -> &'static str {
        "a btree page names a right neighbour behind the end of the index"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Btree && site.block > 0)?;
        let at = usize::from(site.page()?.pd_special()) + 4;
        let next = u32::try_from(site.blocks()).ok()?.checked_add(1000)?;
        let wound = Wound::edit(site, format!("btpo_next set to {next}"), |page| {
            put_u32(page, at, next)
        })?;
        Some(wound.must(&["btree-link-beyond-end"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
