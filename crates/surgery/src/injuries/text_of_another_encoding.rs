//! A character of text is none in the encoding of the database.

use pgclinic_format::heap_tuple::{HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED};

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct TextOfAnotherEncoding;

impl Injury for TextOfAnotherEncoding {
    fn name(&self) -> &'static str {
        "text-of-another-encoding"
    }

    fn summary(&self) -> &'static str {
        "a character of text is none in the encoding of the database"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        const TEXT: u32 = 25;
        const UTF8: i32 = 6;
        let database = site.catalog?.database;
        let encoding = site.cluster.databases.get(&database)?.encoding;
        (encoding == Some(UTF8)).then_some(())?;
        let (row, value) = site.value(seed, |row, value| {
            site.type_oid(value.attribute) == Some(TEXT)
                && row.tuple.has(HEAP_XMIN_COMMITTED)
                && row.tuple.has(HEAP_XMAX_INVALID)
                && value.range.len() > 1
                && row
                    .tuple
                    .bytes()
                    .get(value.range.start)
                    .is_some_and(|byte| byte & 1 == 1 && *byte > 3)
        })?;
        let words = format!("a byte 0xFF in the text of column {}", value.attribute);
        let last = value.range.end.checked_sub(1)?;
        let wound = Wound::edit_row(site, &row, words, |tuple| {
            if let Some(byte) = tuple.get_mut(last) {
                *byte = 0xFF;
            }
        })?;
        Some(wound.must(&["text-not-in-encoding"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::VALUE
    }
}
