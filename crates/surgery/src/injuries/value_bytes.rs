//! Random bytes in a value of fixed length.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct ValueBytes;

impl Injury for ValueBytes {
    fn name(&self) -> &'static str {
        "value-bytes"
    }

    fn summary(&self) -> &'static str {
        "random bytes in a value of fixed length"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |_, value| value.column.attlen > 0)?;

        let mut random = fastrand::Rng::with_seed(seed);
        let words = format!("bytes changed of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            tuple
                .get_mut(value.range.clone())
                .into_iter()
                .flatten()
                .for_each(|byte| *byte ^= random.u8(1..));
        })?;
        Some(
            wound
                .may(&[followers::VALUES])
                .blind("any bytes of that length are a value"),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::VALUE
    }
}
