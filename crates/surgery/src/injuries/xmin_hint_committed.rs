//! A hint bit says that the transaction of a rolled back row committed.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose, rows_of};
use crate::way_out;

/// See the module.
pub struct XminHintCommitted;

impl Injury for XminHintCommitted {
    fn name(&self) -> &'static str {
        "xmin-hint-committed"
    }

    fn summary(&self) -> &'static str {
        "a hint bit says that the transaction of a rolled back row committed"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let rows = rows_of(site.page()?);
        let aborted: Vec<_> = rows
            .iter()
            .filter(|row| {
                !row.tuple.xmin_is_frozen()
                    && site.status(row.tuple.t_xmin()) == Some(XactStatus::Aborted)
            })
            .collect();
        let row = choose(&aborted, seed)?;
        let mask = row.tuple.t_infomask() & !HEAP_XMIN_INVALID | HEAP_XMIN_COMMITTED;
        let words = "HEAP_XMIN_COMMITTED set on a row that was rolled back";
        let wound = Wound::edit_row(site, row, words, |tuple| put_u16(tuple, 20, mask))?;
        Some(
            wound
                .must(&["xmin-hint-wrong"])
                .may(&[followers::CHAINS, followers::VALUES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::HINT_BITS
    }
}
