//! A btree page names another page of the index as its left neighbour.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeLeftLink;

impl Injury for BtreeLeftLink {
    fn name(&self) -> &'static str {
        "btree-left-link"
    }

    fn summary(&self) -> &'static str {
        "a btree page names another page of the index as its left neighbour"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site).filter(|page| page.prev > 1)?;
        let (at, prev) = (btree_site::flags_at(site)?, leaf.prev - 1);
        let clash = [site.block, leaf.next].contains(&prev);
        let wound = Wound::edit(site, format!("btpo_prev set to {prev}"), |page| {
            put_u32(page, at - 12, prev)
        })
        .filter(|_| !clash)?;
        Some(wound.must(&["btree-sibling"]).may(&[followers::BTREE]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
