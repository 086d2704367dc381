//! A digit of a numeric is none.

use pgclinic_format::build::put_u16;
use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED};
use pgclinic_format::{Varlena, varlena};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Row, Site, Value};
use crate::way_out;

/// See the module.
pub struct NumericDigit;

impl Injury for NumericDigit {
    fn name(&self) -> &'static str {
        "numeric-digit"
    }

    fn summary(&self) -> &'static str {
        "a digit of a numeric is none"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        const NUMERIC: u32 = 1700;
        let (row, value) = site.value(seed, |row, value| {
            site.type_oid(value.attribute) == Some(NUMERIC)
                && row.tuple.has(HEAP_XMIN_COMMITTED)
                && row.tuple.has(HEAP_XMAX_INVALID)
                && has_digits(row, value)
        })?;
        let words = format!("the last digit set to 0x7FFF in column {}", value.attribute);
        let last = value.range.end.checked_sub(2)?;
        let wound = Wound::edit_row(site, &row, words, |tuple| put_u16(tuple, last, 0x7FFF))?;
        Some(wound.must(&["value-does-not-decode"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::VALUE
    }
}

/// In the short form, a header of two bytes and at least one digit.
fn has_digits(row: &Row<'_>, value: &Value) -> bool {
    let bytes = row.tuple.bytes().get(value.range.clone());
    let parsed = bytes.and_then(|bytes| varlena::parse(bytes).ok());
    match parsed {
        Some((Varlena::Short(payload) | Varlena::Plain(payload), _)) => {
            payload.len() >= 4 && payload.get(1).is_some_and(|byte| byte & 0xC0 == 0x80)
        }
        _ => false,
    }
}
