//! The line pointers are random bytes.

use pgclinic_format::{LinePointer, Page};

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{ROW_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct LinePointersRandom;

impl Injury for LinePointersRandom {
    fn name(&self) -> &'static str {
        "line-pointers-random"
    }

    fn summary(&self) -> &'static str {
        "the line pointers are random bytes"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(ROW_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let end = usize::from(site.page()?.pd_lower());
        let mut random = fastrand::Rng::with_seed(seed);
        // A few random numbers may all be legal by chance.
        (0..100).find_map(|_| {
            let mut after = site.bytes.clone();
            random.fill(after.get_mut(24..end)?);
            let page = Page::parse(&after)?;
            let special = usize::from(page.pd_special());
            let beyond =
                |pointer: LinePointer| pointer.range().is_some_and(|item| item.end > special);
            page.line_pointers()
                .any(|(_, pointer)| beyond(pointer))
                .then_some(())?;
            let wound = Wound::bytes(
                site,
                &after,
                "the line pointers overwritten with random bytes",
            )?;
            let may = [
                followers::LINE_POINTERS,
                followers::TUPLE_HEADER,
                followers::ATTRIBUTES,
                followers::TOAST_CHUNKS,
            ];
            Some(wound.must(&["item-beyond-page"]).may(&may))
        })
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
