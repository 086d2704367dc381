//! The last entry of a btree leaf is gone.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeEntryRemoved;

impl Injury for BtreeEntryRemoved {
    fn name(&self) -> &'static str {
        "btree-entry-removed"
    }

    fn summary(&self) -> &'static str {
        "the last entry of a btree leaf is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let last = site.page()?.line_pointer_count();
        btree_site::names_live_row(site, last)?;
        leaf.tuple(last).filter(|_| last > leaf.first_data() + 1)?;
        let lower = site.page()?.pd_lower().checked_sub(4)?;
        let wound = Wound::edit(site, format!("pd_lower set to {lower}"), |page| {
            put_u16(page, 12, lower)
        })?;
        Some(
            wound
                .must(&["row-without-index-entry"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
