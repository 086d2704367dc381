//! A leaf tuple of an SP-GiST index is its own next one.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::{item_at, spgist_rows};
use crate::way_out;

/// See the module.
pub struct SpgistChain;

impl Injury for SpgistChain {
    fn name(&self) -> &'static str {
        "spgist-chain"
    }

    fn summary(&self) -> &'static str {
        "a leaf tuple of an SP-GiST index is its own next one"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let rows = spgist_rows(site)?;
        let (item, _) = *choose(&rows, seed)?;
        let at = item_at(site, item)? + 4;
        let words = format!("the next tuple of tuple {item} set to itself");
        let wound = Wound::edit(site, words, |bytes| put_u16(bytes, at, item))?;
        Some(wound.item(item).must(&["spgist-leaf-chain"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
