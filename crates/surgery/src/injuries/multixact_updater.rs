//! The member of a multixact that changed a row has not begun yet.

use pgclinic_format::MultiXactId;
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_model::plan::Change;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct MultixactUpdater;

impl Injury for MultixactUpdater {
    fn name(&self) -> &'static str {
        "multixact-updater"
    }

    fn summary(&self) -> &'static str {
        "the member of a multixact that changed a row has not begun yet"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let xid = site.checkpoint()?.next_xid().0.checked_add(1000)?;
        let multixacts = &site.cluster.multixacts;
        let multi = |xmax: u32| MultiXactId(xmax);
        let row = site.row(seed, |row| {
            row.tuple.has(HEAP_XMAX_IS_MULTI)
                && !row.tuple.has(HEAP_XMAX_INVALID)
                && !row.tuple.xmax_is_locked_only()
                && multixacts
                    .updater(multi(row.tuple.t_xmax().0))
                    .flatten()
                    .is_some()
        })?;
        let number = multi(row.tuple.t_xmax().0);
        let old = multixacts.updater(number).flatten()?;
        let (path, offset) = multixacts.updater_place(number)?;
        let change = Change::Bytes {
            path,
            offset,
            before: old.0.to_le_bytes().to_vec(),
            after: xid.to_le_bytes().to_vec(),
        };
        let words = format!("member {old} of multixact {number} set to {xid}");
        let wound = Wound::of(change, words).item(row.item);
        Some(wound.must(&["multixact-updater"]).may(&[
            followers::CHAINS,
            followers::FATES,
            &["multixact-member-impossible"],
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
