//! A row was deleted by a transaction that has not begun.

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
pub struct XmaxInTheFuture;

impl Injury for XmaxInTheFuture {
    fn name(&self) -> &'static str {
        "xmax-in-the-future"
    }

    fn summary(&self) -> &'static str {
        "a row was deleted by a transaction that has not begun"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let xid = site.checkpoint()?.next_xid().0.checked_add(1000)?;
        let row = site.row(seed, |row| row.tuple.t_infomask2() & HEAP_HOT_UPDATED == 0)?;
        let mask = row.tuple.t_infomask()
            & !(HEAP_XMAX_INVALID
                | HEAP_XMAX_COMMITTED
                | HEAP_XMAX_IS_MULTI
                | HEAP_XMAX_LOCK_ONLY
                | HEAP_XMAX_SHR_LOCK);
        let wound = Wound::edit_row(
            site,
            &row,
            format!("t_xmax set to {xid}, its hint bits cleared"),
            |tuple| {
                put_u32(tuple, 4, xid);
                put_u16(tuple, 20, mask);
            },
        )?;
        Some(
            wound
                .must(&["xmax-in-the-future"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
