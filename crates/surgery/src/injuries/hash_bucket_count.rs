//! The meta page of a hash index names a last bucket that cannot be.

use pgclinic_format::build::put_u32;
use pgclinic_format::hash::Meta;
use pgclinic_format::index_page::AccessMethod;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct HashBucketCount;

impl Injury for HashBucketCount {
    fn name(&self) -> &'static str {
        "hash-bucket-count"
    }

    fn summary(&self) -> &'static str {
        "the meta page of a hash index names a last bucket that cannot be"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        site.method()
            .filter(|method| *method == AccessMethod::Hash)?;
        let meta = Meta::parse(site.page()?).filter(|_| site.block == 0)?;
        let bucket = meta.highmask().checked_add(1)?;
        let wound = Wound::edit(site, format!("hashm_maxbucket set to {bucket}"), |page| {
            put_u32(page, 48, bucket);
        })?;
        Some(wound.must(&["hash-meta-sense"]).may(&[followers::HASH]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
