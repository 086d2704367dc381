//! Text was written over the beginning of a page.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ANY_PAGE, Site};
use crate::way_out;

const TEXT: &[u8] = b"2024-02-29 03:14:15.926 UTC [4711] LOG:  checkpoint starting: time";

/// See the module.
pub struct TextOverHeader;

impl Injury for TextOverHeader {
    fn name(&self) -> &'static str {
        "text-over-header"
    }

    fn summary(&self) -> &'static str {
        "text was written over the beginning of a page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ANY_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let wound = Wound::edit(site, "the first 66 bytes overwritten with text", |page| {
            page.iter_mut()
                .zip(TEXT)
                .for_each(|(byte, letter)| *byte = *letter);
        })?;
        Some(
            wound
                .must(&["invalid-page-flags"])
                .may(&[followers::HEADER]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
