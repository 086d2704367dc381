//! A row that is not frozen was inserted before everything was frozen.

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::HEAP_XMIN_FROZEN;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct XminBeforeFreeze;

impl Injury for XminBeforeFreeze {
    fn name(&self) -> &'static str {
        "xmin-before-freeze"
    }

    fn summary(&self) -> &'static str {
        "a row that is not frozen was inserted before everything was frozen"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.checkpoint()?;
        let frozen = site.relation?.relfrozenxid.0;
        let xid = frozen.saturating_sub(1000).max(3);
        (xid < frozen).then_some(())?;
        let row = site.row(seed, |_| true)?;
        let mask = row.tuple.t_infomask() & !HEAP_XMIN_FROZEN;
        let wound = Wound::edit_row(
            site,
            &row,
            format!("t_xmin set to {xid}, its hint bits cleared"),
            |tuple| {
                put_u32(tuple, 0, xid);
                put_u16(tuple, 20, mask);
            },
        )?;
        Some(
            wound
                .must(&["xmin-before-freeze"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
