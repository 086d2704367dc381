//! Two entries of a btree leaf stand in each other's place.

use crate::btree_site;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BtreeEntriesSwapped;

impl Injury for BtreeEntriesSwapped {
    fn name(&self) -> &'static str {
        "btree-entries-swapped"
    }

    fn summary(&self) -> &'static str {
        "two entries of a btree leaf stand in each other's place"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let leaf = btree_site::leaf(site)?;
        let first = leaf.first_data();
        let (low, high) = (Site::pointer_at(first), Site::pointer_at(first + 1));
        btree_site::keys_differ(site, first)?;
        let wound = Wound::edit(
            site,
            format!("line pointers {first} and {} swapped", first + 1),
            |page| {
                for byte in 0..4 {
                    page.swap(low + byte, high + byte);
                }
            },
        )?;
        Some(
            wound
                .must(&["btree-item-order"])
                .may(&[crate::followers::BTREE]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
