//! Pd_prune_xid is a transaction that has not begun.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct PruneXid;

impl Injury for PruneXid {
    fn name(&self) -> &'static str {
        "prune-xid"
    }

    fn summary(&self) -> &'static str {
        "pd_prune_xid is a transaction that has not begun"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let xid = site.checkpoint()?.next_xid().0.checked_add(1000)?;
        let wound = Wound::edit(site, format!("pd_prune_xid set to {xid}"), |page| {
            put_u32(page, 20, xid)
        })?;
        Some(wound.must(&["prune-xid-in-the-future"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SET_RIGHT_BY_VACUUM
    }
}
