//! The first version of an updated row was inserted by a transaction that was rolled back.

use pgclinic_cluster::XactStatus;
use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::HEAP_XMIN_FROZEN;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct UpdatedRowRolledBack;

impl Injury for UpdatedRowRolledBack {
    fn name(&self) -> &'static str {
        "updated-row-rolled-back"
    }

    fn summary(&self) -> &'static str {
        "the first version of an updated row was inserted by a transaction that was rolled back"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let aborted = site.aborted_xid()?;
        let updates = site.updates();
        let valid: Vec<_> = updates
            .iter()
            .filter(|(old, new)| {
                old.tuple.t_xmin().is_normal()
                    && site.status(new.tuple.t_xmin()) == Some(XactStatus::Committed)
            })
            .collect();
        let (old, _) = choose(&valid, seed)?;
        let mask = old.tuple.t_infomask() & !HEAP_XMIN_FROZEN;
        let words = format!("t_xmin set to {aborted}, which was rolled back, its hints cleared");
        let wound = Wound::edit_row(site, old, words, |tuple| {
            put_u32(tuple, 0, aborted.0);
            put_u16(tuple, 20, mask);
        })?;
        Some(
            wound
                .must(&["update-outlives-row"])
                .may(&[followers::CHAINS]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::TRANSACTION
    }
}
