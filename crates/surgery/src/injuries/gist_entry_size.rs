//! An entry of a GiST page says that it is longer than its item.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{gist, item_at};
use crate::way_out;

/// See the module.
pub struct GistEntrySize;

impl Injury for GistEntrySize {
    fn name(&self) -> &'static str {
        "gist-entry-size"
    }

    fn summary(&self) -> &'static str {
        "an entry of a GiST page says that it is longer than its item"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let items: Vec<_> = gist(site)?.items().collect();
        let item = choose(&items, seed)?;
        let at = item_at(site, item.number)? + 6;
        let info = item.tuple.t_info().checked_add(8)?;
        let words = format!("t_info of entry {} set to {info:#06x}", item.number);
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, info))?;
        Some(wound.item(item.number).must(&["gist-tuple"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
