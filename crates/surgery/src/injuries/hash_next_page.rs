//! A page of a hash index names a first page of a bucket as its overflow page.

use pgclinic_format::build::put_u32;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashNextPage;

impl Injury for HashNextPage {
    fn name(&self) -> &'static str {
        "hash-next-page"
    }

    fn summary(&self) -> &'static str {
        "a page of a hash index names a first page of a bucket as its overflow page"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let (opaque, special) = hash_sites::opaque(site)?;
        opaque.holds_entries().then_some(())?;
        let wound = Wound::edit(site, "hasho_nextblkno set to 1", |page| {
            put_u32(page, special + 4, 1);
        })?;
        Some(wound.must(&["hash-chain-broken"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
