//! A sequence has logged a negative number of values ahead.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SequenceLogCount;

impl Injury for SequenceLogCount {
    fn name(&self) -> &'static str {
        "sequence-log-count"
    }

    fn summary(&self) -> &'static str {
        "a sequence has logged a negative number of values ahead"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(SEQUENCE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let at = usize::from(row.tuple.t_hoff());
        let wound = Wound::edit_row(site, &row, "log_cnt set to -1", |tuple| {
            put_u32(tuple, at + 8, u32::MAX);
            put_u32(tuple, at + 12, u32::MAX);
        })?;
        Some(wound.must(&["sequence-value"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
