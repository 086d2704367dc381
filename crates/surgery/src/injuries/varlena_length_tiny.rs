//! A value claims fewer bytes than its own header has.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct VarlenaLengthTiny;

impl Injury for VarlenaLengthTiny {
    fn name(&self) -> &'static str {
        "varlena-length-tiny"
    }

    fn summary(&self) -> &'static str {
        "a value claims fewer bytes than its own header has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |row, value| {
            value.column.attlen == -1 && value.range.start + 4 <= row.tuple.bytes().len()
        })?;
        let at = value.range.start;

        let words = format!(
            "header replaced by one that claims 1 byte, of column {}",
            value.attribute
        );
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            put_u32(tuple, at, 4);
        })?;
        Some(wound.must(&["varlena-length"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::ROW
    }
}
