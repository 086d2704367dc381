//! A btree page with neighbours is marked as the root.

use pgclinic_format::btree::BTP_ROOT;
use pgclinic_format::build::put_u16;

use crate::btree_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BtreeRootFlag;

impl Injury for BtreeRootFlag {
    fn name(&self) -> &'static str {
        "btree-root-flag"
    }

    fn summary(&self) -> &'static str {
        "a btree page with neighbours is marked as the root"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::page(site).filter(|page| page.next != 0 && !page.is_ignored())?;
        let (at, flags) = (btree_site::flags_at(site)?, leaf.flags | BTP_ROOT);
        let wound = Wound::edit(site, "BTP_ROOT set", |page| put_u16(page, at, flags))?;
        Some(wound.must(&["btree-page-flags"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
