//! A short value claims more bytes than the row has left.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct VarlenaLengthBeyond;

impl Injury for VarlenaLengthBeyond {
    fn name(&self) -> &'static str {
        "varlena-length-beyond"
    }

    fn summary(&self) -> &'static str {
        "a short value claims more bytes than the row has left"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |row, value| {
            value.column.attlen == -1 && row.tuple.bytes().len() - value.range.start < 127
        })?;
        let at = value.range.start;

        let words = format!(
            "header replaced by one that claims 127 bytes, of column {}",
            value.attribute
        );
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            tuple
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte = 0xFF);
        })?;
        Some(wound.must(&["varlena-length"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
