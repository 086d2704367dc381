//! Xmax is marked as committed and as invalid.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct XmaxCommittedAndInvalid;

impl Injury for XmaxCommittedAndInvalid {
    fn name(&self) -> &'static str {
        "xmax-committed-and-invalid"
    }

    fn summary(&self) -> &'static str {
        "xmax is marked as committed and as invalid"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| !row.tuple.has(HEAP_XMAX_IS_MULTI))?;
        let mask = row.tuple.t_infomask() | HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
        let wound = Wound::edit_row(
            site,
            &row,
            "HEAP_XMAX_COMMITTED and HEAP_XMAX_INVALID set",
            |tuple| {
                put_u16(tuple, 20, mask);
            },
        )?;
        Some(
            wound
                .must(&["xmax-committed-and-invalid"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
