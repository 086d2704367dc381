//! The meta page of an SP-GiST index proposes the root for new rows.

use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct SpgistCachedPage;

impl Injury for SpgistCachedPage {
    fn name(&self) -> &'static str {
        "spgist-cached-page"
    }

    fn summary(&self) -> &'static str {
        "the meta page of an SP-GiST index proposes the root for new rows"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Spgist && site.block == 0)?;
        let slot = usize::try_from(seed % 8).ok()?;
        let words = format!("last-used page {slot} set to block 1");
        let wound = Wound::edit(site, words, |bytes| put_u32(bytes, 28 + slot * 8, 1))?;
        Some(wound.must(&["spgist-cached-page"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
