//! A row was deleted before everything was frozen.

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
pub struct XmaxBeforeFreeze;

impl Injury for XmaxBeforeFreeze {
    fn name(&self) -> &'static str {
        "xmax-before-freeze"
    }

    fn summary(&self) -> &'static str {
        "a row was deleted before everything was frozen"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.checkpoint()?;
        let frozen = site.relation?.relfrozenxid.0;
        let xid = frozen.saturating_sub(1000).max(3);
        (xid < frozen).then_some(())?;
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
                .must(&["xmax-before-freeze"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
