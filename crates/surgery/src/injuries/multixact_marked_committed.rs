//! Xmax is a multixact and marked as committed, which is one too many.

use pgclinic_format::MultiXactId;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMAX_LOCK_ONLY, HEAP_XMAX_SHR_LOCK,
};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct MultixactMarkedCommitted;

impl Injury for MultixactMarkedCommitted {
    fn name(&self) -> &'static str {
        "multixact-marked-committed"
    }

    fn summary(&self) -> &'static str {
        "xmax is a multixact and marked as committed, which is one too many"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (minimum, next) = (site.relation?.relminmxid, site.checkpoint()?.next_multi);
        let multi = MultiXactId(next.0.wrapping_sub(1));
        (minimum.0 != 0 && multi.0 != 0 && !multi.precedes(minimum)).then_some(())?;
        let row = site.row(seed, |row| row.tuple.t_infomask2() & HEAP_HOT_UPDATED == 0)?;
        let mask = row.tuple.t_infomask()
            & !(HEAP_XMAX_INVALID
                | HEAP_XMAX_COMMITTED
                | HEAP_XMAX_IS_MULTI
                | HEAP_XMAX_LOCK_ONLY
                | HEAP_XMAX_SHR_LOCK)
            | HEAP_XMAX_IS_MULTI
            | HEAP_XMAX_COMMITTED;
        let wound = Wound::edit_row(
            site,
            &row,
            format!("t_xmax set to multixact {multi} and HEAP_XMAX_COMMITTED"),
            |tuple| {
                put_u32(tuple, 4, multi.0);
                put_u16(tuple, 20, mask);
            },
        )?;
        Some(
            wound
                .must(&["multixact-marked-committed"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
