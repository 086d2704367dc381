//! The first page of a bucket of a hash index names another bucket.

use pgclinic_format::build::put_u32;
use pgclinic_format::hash::LH_BUCKET_PAGE;

use super::hash_sites;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashPageBucket;

impl Injury for HashPageBucket {
    fn name(&self) -> &'static str {
        "hash-page-bucket"
    }

    fn summary(&self) -> &'static str {
        "the first page of a bucket of a hash index names another bucket"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let (opaque, special) = hash_sites::opaque(site)?;
        (opaque.page_type() == LH_BUCKET_PAGE).then_some(())?;
        let bucket = opaque.bucket ^ 1;
        let wound = Wound::edit(site, format!("hasho_bucket set to {bucket}"), |page| {
            put_u32(page, special + 8, bucket);
        })?;
        Some(wound.must(&["hash-page-misplaced"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
