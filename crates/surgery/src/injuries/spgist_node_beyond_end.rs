//! A node of an SP-GiST index leads behind the end of the index.

use pgclinic_format::build::put_u16;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::spgist_nodes;
use crate::way_out;

/// See the module.
pub struct SpgistNodeBeyondEnd;

impl Injury for SpgistNodeBeyondEnd {
    fn name(&self) -> &'static str {
        "spgist-node-beyond-end"
    }

    fn summary(&self) -> &'static str {
        "a node of an SP-GiST index leads behind the end of the index"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let nodes = spgist_nodes(site)?;
        let (item, at) = *choose(&nodes, seed)?;
        let block = u16::try_from(site.blocks()).ok()?.checked_add(1000)?;
        let words = format!("a node of tuple {item} set to block {block}");
        let wound = Wound::edit(site, words, |bytes| {
            put_u16(bytes, at, 0);
            put_u16(bytes, at + 2, block);
        })?;
        Some(wound.item(item).must(&["spgist-link"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
