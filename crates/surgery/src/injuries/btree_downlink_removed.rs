//! The last entry of an inner page of a btree is gone.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeDownlinkRemoved;

impl Injury for BtreeDownlinkRemoved {
    fn name(&self) -> &'static str {
        "btree-downlink-removed"
    }

    fn summary(&self) -> &'static str {
        "the last entry of an inner page of a btree is gone"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let inner = btree_site::inner(site).filter(|page| page.next == 0)?;
        inner.tuple(inner.first_data() + 2)?;
        let lower = site.page()?.pd_lower().checked_sub(4)?;
        let wound = Wound::edit(site, format!("pd_lower set to {lower}"), |page| {
            put_u16(page, 12, lower)
        })?;
        Some(
            wound
                .must(&["btree-downlink-missing"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
