//! A page of a hash index is of two types at once.

use pgclinic_format::build::put_u16;
use pgclinic_format::hash::{LH_BUCKET_PAGE, LH_OVERFLOW_PAGE};

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashPageType;

impl Injury for HashPageType {
    fn name(&self) -> &'static str {
        "hash-page-type"
    }

    fn summary(&self) -> &'static str {
        "a page of a hash index is of two types at once"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let (opaque, special) = hash_sites::opaque(site)?;
        opaque.holds_entries().then_some(())?;
        let flags = opaque.flags | LH_BUCKET_PAGE | LH_OVERFLOW_PAGE;
        let wound = Wound::edit(site, format!("hasho_flag set to {flags:#06x}"), |page| {
            put_u16(page, special + 12, flags);
        })?;
        let wound = wound.must(&["hash-page-flags"]);
        Some(wound.may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
