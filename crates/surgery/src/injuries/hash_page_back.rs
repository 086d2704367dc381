//! An overflow page of a hash index names itself as the page before.

use pgclinic_format::build::put_u32;
use pgclinic_format::hash::LH_OVERFLOW_PAGE;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashPageBack;

impl Injury for HashPageBack {
    fn name(&self) -> &'static str {
        "hash-page-back"
    }

    fn summary(&self) -> &'static str {
        "an overflow page of a hash index names itself as the page before"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let (opaque, special) = hash_sites::opaque(site)?;
        (opaque.page_type() == LH_OVERFLOW_PAGE).then_some(())?;
        let words = format!("hasho_prevblkno set to {}", site.block);
        let wound = Wound::edit(site, words, |page| put_u32(page, special, site.block))?;
        Some(wound.must(&["hash-chain-broken"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
