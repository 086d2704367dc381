//! Both versions of an updated row are valid.

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMIN_FROZEN};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct UpdateHalfDone;

impl Injury for UpdateHalfDone {
    fn name(&self) -> &'static str {
        "update-half-done"
    }

    fn summary(&self) -> &'static str {
        "both versions of an updated row are valid"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let oldest = site.checkpoint()?.oldest_xid.0;
        let forgotten = oldest.checked_sub(1).filter(|xid| *xid >= 3)?;
        let updates = site.updates();
        let (old, new) = choose(&updates, seed)?;
        let old_mask = old.tuple.t_infomask() & !HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
        let new_mask = new.tuple.t_infomask() | HEAP_XMIN_FROZEN;
        let words = format!(
            "row {} frozen as inserted by {forgotten}, row {} marked as not updated by it",
            new.item, old.item
        );
        let wound = Wound::edit(site, words, |page| {
            for (at, xid_at, mask) in [(old.at, 4, old_mask), (new.at, 0, new_mask)] {
                if let Some(tuple) = page.get_mut(at..) {
                    put_u32(tuple, xid_at, forgotten);
                    put_u16(tuple, 20, mask);
                }
            }
        })?;
        Some(
            wound
                .item(old.item)
                .must(&["update-half-done"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
