//! Two nodes of an SP-GiST index lead to the same place.

use crate::followers::INDEX_TREES;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site, choose};
use crate::trees::spgist_nodes;
use crate::way_out;

/// See the module.
pub struct SpgistNodeDoubled;

impl Injury for SpgistNodeDoubled {
    fn name(&self) -> &'static str {
        "spgist-node-doubled"
    }

    fn summary(&self) -> &'static str {
        "two nodes of an SP-GiST index lead to the same place"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let nodes = spgist_nodes(site)?;
        let (first, rest) = nodes.split_first()?;
        let (item, at) = *choose(rest, seed)?;
        let link: [u8; 6] = *site.bytes.get(first.1..)?.first_chunk()?;
        let words = format!(
            "a node of tuple {item} set to what a node of tuple {} leads to",
            first.0
        );
        let wound = Wound::edit(site, words, |bytes| {
            if let Some(node) = bytes.get_mut(at..at + 6) {
                node.copy_from_slice(&link);
            }
        })?;
        Some(
            wound
                .item(item)
                .must(&["spgist-downlink"])
                .may(&[INDEX_TREES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
