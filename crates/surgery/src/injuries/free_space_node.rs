//! The root of a page of a free space map says less than its branches.

use pgclinic_format::free_space_map::NODES_AT;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{FREE_SPACE_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct FreeSpaceNode;

impl Injury for FreeSpaceNode {
    fn name(&self) -> &'static str {
        "free-space-node"
    }

    fn summary(&self) -> &'static str {
        "the root of a page of a free space map says less than its branches"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(FREE_SPACE_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let root = *site.bytes.get(NODES_AT).filter(|root| **root > 0)?;
        let words = format!("the root's {root} set to {}", root - 1);
        let wound = Wound::edit(site, words, |page| {
            if let Some(byte) = page.get_mut(NODES_AT) {
                *byte = root - 1;
            }
        })?;
        Some(wound.must(&["free-space-map-tree"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::NOTHING
    }
}
