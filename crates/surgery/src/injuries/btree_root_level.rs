//! The meta page of a btree tells another level of its root.

use pgclinic_format::btree::Meta;
use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{INDEX_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct BtreeRootLevel;

impl Injury for BtreeRootLevel {
    fn name(&self) -> &'static str {
        "btree-root-level"
    }

    fn summary(&self) -> &'static str {
        "the meta page of a btree tells another level of its root"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(INDEX_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let page = site
            .page()
            .filter(|_| site.method() == Some(AccessMethod::Btree))?;
        let meta = Meta::parse(page).filter(|meta| site.block == 0 && meta.root != 0)?;
        let level = meta.level + 1;
        let wound = Wound::edit(site, format!("btm_level set to {level}"), |page| {
            put_u32(page, 36, level)
        })?;
        Some(wound.must(&["btree-root"]).may(&[followers::BTREE]))
    }

    fn way_out(&self) -> &'static str {
        way_out::INDEX
    }
}
