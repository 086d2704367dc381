//! Is_called of a sequence is neither true nor false.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{SEQUENCE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SequenceIsCalled;

impl Injury for SequenceIsCalled {
    fn name(&self) -> &'static str {
        "sequence-is-called"
    }

    fn summary(&self) -> &'static str {
        "is_called of a sequence is neither true nor false"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(SEQUENCE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let at = usize::from(row.tuple.t_hoff());
        let wound = Wound::edit_row(site, &row, "is_called set to 7", |tuple| {
            tuple
                .iter_mut()
                .skip(at + 16)
                .take(1)
                .for_each(|byte| *byte = 7);
        })?;
        Some(wound.must(&["sequence-value"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::SEQUENCE
    }
}
