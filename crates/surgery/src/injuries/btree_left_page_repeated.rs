//! A btree leaf holds the entries of the page to its left.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;
use crate::{btree_site, followers};

/// See the module.
pub struct BtreeLeftPageRepeated;

impl Injury for BtreeLeftPageRepeated {
    fn name(&self) -> &'static str {
        "btree-left-page-repeated"
    }

    fn summary(&self) -> &'static str {
        "a btree leaf holds the entries of the page to its left"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site).filter(|page| page.prev != 0 && page.next != 0)?;
        btree_site::keys_differ(site, leaf.first_data())?;
        let left = site.other_block(leaf.prev)?;
        let special = usize::from(site.page()?.pd_special());
        let mut after = site.bytes.clone();
        after
            .get_mut(12..special)?
            .copy_from_slice(left.get(12..special)?);
        let words = format!("entries of block {} written here", leaf.prev);
        let wound = Wound::bytes(site, &after, words)?;
        Some(
            wound
                .must(&[
                    "btree-page-order",
                    "btree-child-bounds",
                    "index-entry-doubled",
                ])
                .may(&[followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
