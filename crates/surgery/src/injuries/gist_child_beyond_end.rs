//! An entry of an inner GiST page names a child behind the end of the index.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{gist_downlinks, item_at};
use crate::way_out;

/// See the module.
pub struct GistChildBeyondEnd;

impl Injury for GistChildBeyondEnd {
    fn name(&self) -> &'static str {
        "gist-child-beyond-end"
    }

    fn summary(&self) -> &'static str {
        "an entry of an inner GiST page names a child behind the end of the index"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let items = gist_downlinks(site)?;
        let item = choose(&items, seed)?.number;
        let at = item_at(site, item)?;
        let child = u16::try_from(site.blocks()).ok()?.checked_add(1000)?;
        let words = format!("the child of entry {item} set to {child}");
        let wound = Wound::edit(site, words, |bytes| {
            put_u16(bytes, at, 0);
            put_u16(bytes, at + 2, child);
        })?;
        Some(wound.item(item).must(&["gist-link-beyond-end"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
