//! An entry of an inner GiST page is marked as invalid.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{gist_downlinks, item_at};
use crate::way_out;

/// See the module.
pub struct GistEntryInvalid;

impl Injury for GistEntryInvalid {
    fn name(&self) -> &'static str {
        "gist-entry-invalid"
    }

    fn summary(&self) -> &'static str {
        "an entry of an inner GiST page is marked as invalid"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let items = gist_downlinks(site)?;
        let item = choose(&items, seed)?.number;
        let at = item_at(site, item)? + 4;
        let words = format!("the line pointer number in entry {item} set to 0xfffe");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, 0xFFFE))?;
        Some(wound.item(item).must(&["gist-invalid-tuple"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
