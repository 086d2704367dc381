//! A shared row says the opposite of what its multixact says.

use pgclinic_format::MultiXactId;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{
    HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY,
};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct MultixactLockOnlyFlipped;

impl Injury for MultixactLockOnlyFlipped {
    fn name(&self) -> &'static str {
        "multixact-lock-only-flipped"
    }

    fn summary(&self) -> &'static str {
        "a shared row says the opposite of what its multixact says"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let checkpoint = site.checkpoint()?;
        let row = site.row(seed, |row| {
            let multi = MultiXactId(row.tuple.t_xmax().0);
            row.tuple.has(HEAP_XMAX_IS_MULTI)
                && !row.tuple.has(HEAP_XMAX_INVALID)
                && multi.precedes(checkpoint.next_multi)
                && !multi.precedes(checkpoint.oldest_multi)
                && site.cluster.multixacts.updater(multi).is_some()
        })?;
        // A lock of the upgraded kind is never looked up.
        let mask = row.tuple.t_infomask() ^ HEAP_XMAX_LOCK_ONLY | HEAP_XMAX_KEYSHR_LOCK;
        let words = "HEAP_XMAX_LOCK_ONLY turned round on a row with a multixact";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 20, mask))?;
        Some(
            wound
                .must(&["multixact-flags"])
                .may(&[followers::CHAINS, followers::FATES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
