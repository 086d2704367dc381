//! Text was written over the rows of a page.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, hoff_contradiction};
use crate::way_out;

const TEXT: &[u8] = b"2024-02-29 03:14:15.926 UTC [4711] LOG:  checkpoint starting: time";

/// See the module.
pub struct TextOverRows;

impl Injury for TextOverRows {
    fn name(&self) -> &'static str {
        "text-over-rows"
    }

    fn summary(&self) -> &'static str {
        "text was written over the rows of a page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let row = site.row(seed, |_| true)?;
        let mut after = site.bytes.clone();
        after
            .get_mut(row.at..)?
            .iter_mut()
            .zip(TEXT)
            .for_each(|(byte, letter)| *byte = *letter);
        let wound = Wound::bytes(
            site,
            &after,
            format!("text written over the page from byte {}", row.at),
        )?;
        let wound = wound.item(row.item).may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]);
        Some(wound.must_or_blind(
            hoff_contradiction(&after),
            "the text happens to read as the header of a row",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
