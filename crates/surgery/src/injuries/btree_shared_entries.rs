//! The meta page of a btree lets equal keys share an entry that need not look alike.

use pgclinic_format::btree::Meta;
use pgclinic_format::index_page::AccessMethod;

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BtreeSharedEntries;

impl Injury for BtreeSharedEntries {
    fn name(&self) -> &'static str {
        "btree-shared-entries"
    }

    fn summary(&self) -> &'static str {
        "the meta page of a btree lets equal keys share an entry that need not look alike"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let is_meta = site.method() == Some(AccessMethod::Btree) && site.block == 0;
        let meta = Meta::parse(site.page().filter(|_| is_meta)?)?;
        let (catalog, index) = (site.catalog?, site.relation?.index.as_ref()?);
        let deterministic = |oid| Some(catalog.collation(oid)?.deterministic);
        let unlike = index.is_equal_image(deterministic) == Some(false) && !index.has_interval();
        (unlike && !meta.all_equal_image && meta.version >= 4).then_some(())?;
        let wound = Wound::edit(site, "btm_allequalimage set", |page| {
            if let Some(byte) = page.get_mut(Meta::ALL_EQUAL_IMAGE_AT) {
                *byte = 1;
            }
        })?;
        Some(wound.must(&["btree-shared-entries-wrong"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
