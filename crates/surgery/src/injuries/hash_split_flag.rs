//! A bucket of a hash index is marked as being filled by a split.

use pgclinic_format::build::put_u16;
use pgclinic_format::hash::{LH_BUCKET_BEING_POPULATED, LH_BUCKET_PAGE, LH_SPLIT_FLAGS};

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashSplitFlag;

impl Injury for HashSplitFlag {
    fn name(&self) -> &'static str {
        "hash-split-flag"
    }

    fn summary(&self) -> &'static str {
        "a bucket of a hash index is marked as being filled by a split"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let (opaque, special) = hash_sites::opaque(site)?;
        let whole = opaque.page_type() == LH_BUCKET_PAGE && opaque.flags & LH_SPLIT_FLAGS == 0;
        (whole && opaque.bucket > 0).then_some(())?;
        let flags = opaque.flags | LH_BUCKET_BEING_POPULATED;
        let wound = Wound::edit(site, format!("hasho_flag set to {flags:#06x}"), |page| {
            put_u16(page, special + 12, flags);
        })?;
        Some(wound.must(&["hash-split-state"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
