//! An entry of a btree leaf names a row that is not there.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeEntryWithoutRow;

impl Injury for BtreeEntryWithoutRow {
    fn name(&self) -> &'static str {
        "btree-entry-without-row"
    }

    fn summary(&self) -> &'static str {
        "an entry of a btree leaf names a row that is not there"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let item = leaf.first_data();
        let tuple = leaf.tuple(item).filter(|tuple| !tuple.is_posting())?;
        let at = btree_site::entry_at(site, item)?;
        btree_site::names_live_row(site, item)?;
        let words = format!("row {} becomes number 2000 of its block", tuple.0.t_tid());
        let wound = Wound::edit(site, words, |page| put_u16(page, at + 4, 2000))?.item(item);
        Some(
            wound
                .must(&["index-entry-without-row", "row-without-index-entry"])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
