//! Two entries of an inner page of a btree lead to each other's pages.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeDownlinksSwapped;

impl Injury for BtreeDownlinksSwapped {
    fn name(&self) -> &'static str {
        "btree-downlinks-swapped"
    }

    fn summary(&self) -> &'static str {
        "two entries of an inner page of a btree lead to each other's pages"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let inner = btree_site::inner(site)?;
        let item = inner.first_data() + 1;
        let (one, other) = (inner.tuple(item)?.child(), inner.tuple(item + 1)?.child());
        let (at, next) = (
            btree_site::entry_at(site, item)?,
            btree_site::entry_at(site, item + 1)?,
        );
        let wound = Wound::edit(site, format!("entries lead to {other} and {one}"), |page| {
            btree_site::put_block(page, at, other);
            btree_site::put_block(page, next, one);
        })?
        .item(item);
        Some(wound.must(&["btree-downlink"]).may(&[followers::BTREE]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
