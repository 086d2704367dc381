//! A compressed difference between two row numbers of a GIN index is 0.

use pgclinic_format::gin::{DATA_AT, GIN_COMPRESSED, Opaque, PageKind, Segments};
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct GinPostingNumber;

impl Injury for GinPostingNumber {
    fn name(&self) -> &'static str {
        "gin-posting-number"
    }

    fn summary(&self) -> &'static str {
        "a row number of a GIN index stands twice in its list"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Gin)?;
        let page = site.page()?;
        let opaque = Opaque::of(page)?;
        let is_leaf = opaque.kind()? == PageKind::PostingLeaf && opaque.has(GIN_COMPRESSED);
        is_leaf.then_some(())?;
        let rows = Segments::of(page).next()?.rows.count();
        (rows > 1).then_some(())?;
        let at = DATA_AT + 8;
        let words = format!("byte {at} of the first list set to 0");
        let wound = Wound::edit(site, words, |page| {
            if let Some(byte) = page.get_mut(at) {
                *byte = 0;
            }
        })?;
        Some(wound.must(&["gin-posting-page"]).may(&[&["gin-row-order"]]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
