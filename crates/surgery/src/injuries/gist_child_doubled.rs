//! Two entries of an inner GiST page name the same child.

use pgclinic_format::build::put_u16;

use crate::followers::INDEX_TREES;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{gist_downlinks, item_at};
use crate::way_out;

/// See the module.
pub struct GistChildDoubled;

impl Injury for GistChildDoubled {
    fn name(&self) -> &'static str {
        "gist-child-doubled"
    }

    fn summary(&self) -> &'static str {
        "two entries of an inner GiST page name the same child"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let items = gist_downlinks(site)?;
        let (first, rest) = items.split_first()?;
        let (item, child) = (choose(rest, seed)?.number, first.tuple.t_tid().block);
        let at = item_at(site, item)?;
        let (high, low) = (
            u16::try_from(child >> 16).ok()?,
            u16::try_from(child & 0xFFFF).ok()?,
        );
        let words = format!(
            "the child of entry {item} set to {child}, as in entry {}",
            first.number
        );
        let wound = Wound::edit(site, words, |bytes| {
            put_u16(bytes, at, high);
            put_u16(bytes, at + 2, low);
        })?;
        Some(
            wound
                .item(item)
                .must(&["gist-downlink"])
                .may(&[INDEX_TREES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
