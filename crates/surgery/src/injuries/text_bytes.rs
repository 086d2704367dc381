//! Random bytes in a value of variable length.

use std::ops::Range;

use pgclinic_format::Varlena;
use pgclinic_format::varlena;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Row, Site, Value};
use crate::way_out;

/// The payload of a value that stands in the row as it is.
fn payload(row: &Row<'_>, value: &Value) -> Option<Range<usize>> {
    let bytes = row.tuple.bytes().get(value.range.clone())?;
    (value.column.attlen == -1).then_some(())?;
    match varlena::parse(bytes).ok()?.0 {
        Varlena::Short(payload) if payload.len() >= 4 => {
            Some(value.range.start + 1..value.range.end)
        }
        Varlena::Plain(payload) if payload.len() >= 4 => {
            Some(value.range.start + 4..value.range.end)
        }
        _ => None,
    }
}

/// See the module.
pub struct TextBytes;

impl Injury for TextBytes {
    fn name(&self) -> &'static str {
        "text-bytes"
    }

    fn summary(&self) -> &'static str {
        "random bytes in a value of variable length"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, |row, value| payload(row, value).is_some())?;

        let mut random = fastrand::Rng::with_seed(seed);
        let payload = payload(&row, &value)?;
        let words = format!("payload changed of column {}", value.attribute);
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            tuple
                .get_mut(payload.clone())
                .into_iter()
                .flatten()
                .for_each(|byte| *byte ^= random.u8(1..));
        })?;
        Some(
            wound
                .may(&[followers::VALUES])
                .blind("any bytes may be payload; whether they decode is a question for the type"),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::VALUE
    }
}
