//! An entry of a hash index claims another length.

use pgclinic_format::build::put_u16;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashEntryLength;

impl Injury for HashEntryLength {
    fn name(&self) -> &'static str {
        "hash-entry-length"
    }

    fn summary(&self) -> &'static str {
        "an entry of a hash index claims another length"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (entry, at) = hash_sites::entry(site, seed, |_| true)?;
        let wound = Wound::edit(site, "the size in t_info set to 24", |page| {
            put_u16(page, at + 6, 24);
        })?;
        let wound = wound.item(entry.item).must(&["hash-entry-damaged"]);
        Some(wound.may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
