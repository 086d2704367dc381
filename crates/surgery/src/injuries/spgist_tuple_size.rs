//! A leaf tuple of an SP-GiST index says that it is longer than its item.

use pgclinic_format::build::put_u32;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{item_at, spgist_rows};
use crate::way_out;

/// See the module.
pub struct SpgistTupleSize;

impl Injury for SpgistTupleSize {
    fn name(&self) -> &'static str {
        "spgist-tuple-size"
    }

    fn summary(&self) -> &'static str {
        "a leaf tuple of an SP-GiST index says that it is longer than its item"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let rows = spgist_rows(site)?;
        let (item, tuple) = *choose(&rows, seed)?;
        let at = item_at(site, item)?;
        let size = tuple.leaf_size().checked_add(8)?;
        let words = format!("the size of tuple {item} set to {size}");
        let wound = Wound::edit(site, words, |bytes| put_u32(bytes, at, size << 2))?;
        Some(wound.item(item).must(&["spgist-tuple"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
