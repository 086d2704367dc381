//! The highest bit of a hash code in an index is the other one.

use pgclinic_format::build::put_u32;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashCodeOrder;

impl Injury for HashCodeOrder {
    fn name(&self) -> &'static str {
        "hash-code-order"
    }

    fn summary(&self) -> &'static str {
        "the highest bit of a hash code in an index is the other one"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        const HIGHEST: u32 = 1 << 31;
        // Between two others it cannot stay in order on both sides.
        let between = |codes: [u32; 3]| codes[0] >> 31 == codes[2] >> 31;
        let (entry, at) = hash_sites::entry(site, seed, between)?;
        let wound = Wound::edit(site, "bit 31 of the hash code turned over", |page| {
            put_u32(page, at + 8, entry.code ^ HIGHEST);
        })?;
        let wound = wound.item(entry.item).must(&["hash-code-order"]);
        Some(wound.may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
