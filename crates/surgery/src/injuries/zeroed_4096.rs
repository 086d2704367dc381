//! 4096 bytes of a page are zeros.

use pgclinic_format::Page;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site, choose, hoff_contradiction};
use crate::way_out;

/// See the module.
pub struct Zeroed4096;

impl Injury for Zeroed4096 {
    fn name(&self) -> &'static str {
        "zeroed-4096"
    }

    fn summary(&self) -> &'static str {
        "4096 bytes of a page are zeros"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let halves: Vec<usize> = (0..site.bytes.len()).step_by(4096).collect();
        let start = *choose(&halves, seed).filter(|_| halves.len() > 1)?;
        let mut after = site.bytes.clone();
        after.get_mut(start..start + 4096)?.fill(0);
        let page = Page::parse(&after)?;
        (!page.is_zeroed()).then_some(())?;
        let seen = if page.is_new() {
            Some("new-page-with-content")
        } else {
            hoff_contradiction(&after)
        };
        let wound = Wound::bytes(
            site,
            &after,
            format!("bytes {start} to {} set to zero", start + 4095),
        )?;
        let wound = wound.may(&[
            followers::HEADER,
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]);
        Some(wound.must_or_blind(
            seen,
            "no row begins in these bytes, and zeros may be values",
        ))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
