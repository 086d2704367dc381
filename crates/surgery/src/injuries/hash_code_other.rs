//! A hash code in an index is that of another value of the same bucket.

use pgclinic_format::Page;
use pgclinic_format::build::put_u32;
use pgclinic_format::hash::Meta;

use super::hash_sites;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashCodeOther;

impl Injury for HashCodeOther {
    fn name(&self) -> &'static str {
        "hash-code-other"
    }

    fn summary(&self) -> &'static str {
        "a hash code in an index is that of another value of the same bucket"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        hash_sites::opaque(site)?;
        let meta_page = site.other_block(0)?;
        let step = Meta::parse(Page::parse(&meta_page)?)?
            .highmask()
            .checked_add(1)?;
        let other = |code: u32| code.checked_add(step);
        let roomy = |codes: [u32; 3]| other(codes[1]).is_some_and(|code| code <= codes[2]);
        let (entry, at) = hash_sites::entry(site, seed, roomy)?;
        let code = other(entry.code)?;
        let wound = Wound::edit(site, format!("the hash code set to {code:#010x}"), |page| {
            put_u32(page, at + 8, code);
        })?;
        Some(wound.item(entry.item).must(&["hash-code-wrong"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
