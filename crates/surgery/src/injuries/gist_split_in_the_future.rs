//! A GiST page was split in the future, by what it says.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::trees::gist;
use crate::way_out;

/// See the module.
pub struct GistSplitInTheFuture;

impl Injury for GistSplitInTheFuture {
    fn name(&self) -> &'static str {
        "gist-split-in-the-future"
    }

    fn summary(&self) -> &'static str {
        "a GiST page was split in the future, by what it says"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        gist(site).filter(|_| site.checkpoint().is_some())?;
        let at = usize::from(site.page()?.pd_special());
        let wound = Wound::edit(site, "nsn set to 7FFFFFFF/0", |bytes| {
            put_u32(bytes, at, 0x7FFF_FFFF);
            put_u32(bytes, at + 4, 0);
        })?;
        Some(wound.must(&["gist-nsn"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
