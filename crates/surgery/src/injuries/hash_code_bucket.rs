//! A bit of a hash code that chooses the bucket is the other one.

use pgclinic_format::build::put_u32;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashCodeBucket;

impl Injury for HashCodeBucket {
    fn name(&self) -> &'static str {
        "hash-code-bucket"
    }

    fn summary(&self) -> &'static str {
        "a bit of a hash code that chooses the bucket is the other one"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        // The order of the page is kept.
        let roomy = |codes: [u32; 3]| (codes[0]..=codes[2]).contains(&(codes[1] ^ 1));
        let (entry, at) = hash_sites::entry(site, seed, roomy)?;
        let wound = Wound::edit(site, "bit 0 of the hash code turned over", |page| {
            put_u32(page, at + 8, entry.code ^ 1);
        })?;
        let wound = wound.item(entry.item).must(&["hash-bucket-wrong"]);
        Some(wound.may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
