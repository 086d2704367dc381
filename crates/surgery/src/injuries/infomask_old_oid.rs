//! A row claims an OID column, which no version since 12 writes.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::HEAP_HASOID_OLD;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct InfomaskOldOid;

impl Injury for InfomaskOldOid {
    fn name(&self) -> &'static str {
        "infomask-old-oid"
    }

    fn summary(&self) -> &'static str {
        "a row claims an OID column, which no version since 12 writes"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let mask = row.tuple.t_infomask() | HEAP_HASOID_OLD;
        let wound = Wound::edit_row(site, &row, "HEAP_HASOID_OLD set", |tuple| {
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["unused-infomask-bits"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
