//! An entry of a btree claims more bytes than its line pointer.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeEntrySize;

impl Injury for BtreeEntrySize {
    fn name(&self) -> &'static str {
        "btree-entry-size"
    }

    fn summary(&self) -> &'static str {
        "an entry of a btree claims more bytes than its line pointer"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let item = leaf.first_data();
        let (at, info) = (
            btree_site::entry_at(site, item)?,
            leaf.tuple(item)?.0.t_info(),
        );
        let wound = Wound::edit(site, "the size in t_info is 8 more", |page| {
            put_u16(page, at + 6, info + 8)
        })?
        .item(item);
        Some(wound.must(&["btree-tuple-shape"]).may(&[followers::BTREE]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
