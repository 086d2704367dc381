//! A hint bit says that a deletion that committed was rolled back.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct XmaxHintInvalid;

impl Injury for XmaxHintInvalid {
    fn name(&self) -> &'static str {
        "xmax-hint-invalid"
    }

    fn summary(&self) -> &'static str {
        "a hint bit says that a deletion that committed was rolled back"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |row| {
            !row.tuple.has(HEAP_XMAX_INVALID)
                && !row.tuple.has(HEAP_XMAX_IS_MULTI)
                && !row.tuple.xmax_is_locked_only()
                && site.status(row.tuple.t_xmax()) == Some(XactStatus::Committed)
        })?;
        let mask = row.tuple.t_infomask() & !HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID;
        let words = "HEAP_XMAX_INVALID set on a row that was deleted or updated";
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, 20, mask))?;
        Some(wound.must(&["xmax-hint-wrong"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::HINT_BITS
    }
}
