//! Two entries of a btree leaf name one row.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeEntryDoubled;

impl Injury for BtreeEntryDoubled {
    fn name(&self) -> &'static str {
        "btree-entry-doubled"
    }

    fn summary(&self) -> &'static str {
        "two entries of a btree leaf name one row"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let item = leaf.first_data();
        let other = leaf.tuple(item + 1).filter(|tuple| !tuple.is_posting())?;
        leaf.tuple(item).filter(|tuple| !tuple.is_posting())?;
        btree_site::keys_differ(site, item)?;
        btree_site::names_live_row(site, item)?;
        btree_site::names_live_row(site, item + 1)?;
        let (at, row) = (btree_site::entry_at(site, item)?, other.0.t_tid());
        let wound = Wound::edit(site, format!("the entry names row {row}"), |page| {
            btree_site::put_block(page, at, row.block);
            put_u16(page, at + 4, row.offset);
        })?
        .item(item);
        Some(
            wound
                .must(&["index-entry-doubled", "row-without-index-entry"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
