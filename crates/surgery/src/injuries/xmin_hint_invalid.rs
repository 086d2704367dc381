//! A hint bit says that the transaction of a committed row was rolled back.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct XminHintInvalid;

impl Injury for XminHintInvalid {
    fn name(&self) -> &'static str {
        "xmin-hint-invalid"
    }

    fn summary(&self) -> &'static str {
        "a hint bit says that the transaction of a committed row was rolled back"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            row.tuple.t_infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_COMMITTED
                && site.status(row.tuple.t_xmin()) == Some(XactStatus::Committed)
        })?;
        let mask = row.tuple.t_infomask() ^ HEAP_XMIN_FROZEN;
        let wound = Wound::edit_row(
            site,
            &row,
            "HEAP_XMIN_COMMITTED replaced by HEAP_XMIN_INVALID",
            |tuple| {
                put_u16(tuple, 20, mask);
            },
        )?;
        Some(wound.must(&["xmin-hint-wrong"]).may(&[followers::CHAINS]))
    }

    fn way_out(&self) -> &'static str {
        way_out::HINT_BITS
    }
}
