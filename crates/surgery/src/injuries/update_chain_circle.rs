//! The next version of a row leads back to it.

use pgclinic_format::build::{put_u16, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI,
    HEAP_XMAX_LOCK_ONLY, HEAP_XMAX_SHR_LOCK,
};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose};
use crate::way_out;

/// See the module.
pub struct UpdateChainCircle;

impl Injury for UpdateChainCircle {
    fn name(&self) -> &'static str {
        "update-chain-circle"
    }

    fn summary(&self) -> &'static str {
        "the next version of a row leads back to it"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let updates = site.updates();
        let plain: Vec<_> = updates
            .iter()
            .filter(|(old, new)| {
                old.tuple.t_xmin().is_normal()
                    && old.tuple.t_infomask2() & HEAP_ONLY_TUPLE == 0
                    && new.tuple.t_ctid().offset == new.item
            })
            .collect();
        let (old, new) = choose(&plain, seed)?;
        let mask = new.tuple.t_infomask()
            & !(HEAP_XMAX_INVALID
                | HEAP_XMAX_COMMITTED
                | HEAP_XMAX_IS_MULTI
                | HEAP_XMAX_LOCK_ONLY
                | HEAP_XMAX_SHR_LOCK);
        let words = format!("updated, by its own header, to line pointer {}", old.item);
        let wound = Wound::edit_row(site, new, words, |tuple| {
            put_u32(tuple, 4, old.tuple.t_xmin().0);
            put_u16(tuple, 16, old.item);
            put_u16(tuple, 20, mask);
        })?;
        Some(wound.must(&["update-chain-cycle"]).may(&[
            followers::CHAINS,
            followers::FATES,
            followers::TUPLE_HEADER,
        ]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
