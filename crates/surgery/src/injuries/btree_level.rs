//! A leaf of a btree claims to stand on level 1.

use pgclinic_format::btree::BTP_LEAF;
use pgclinic_format::build::{put_u16, put_u32};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeLevel;

impl Injury for BtreeLevel {
    fn name(&self) -> &'static str {
        "btree-level"
    }

    fn summary(&self) -> &'static str {
        "a leaf of a btree claims to stand on level 1"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site).filter(|page| page.prev != 0)?;
        let (at, flags) = (btree_site::flags_at(site)?, leaf.flags & !BTP_LEAF);
        let wound = Wound::edit(site, "level set to 1, BTP_LEAF cleared", |page| {
            put_u16(page, at, flags);
            put_u32(page, at - 4, 1);
        })?;
        Some(wound.must(&["btree-level"]).may(&[followers::BTREE]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
