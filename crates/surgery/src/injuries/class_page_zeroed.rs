//! A page of pg_class is all zeros, and its relations have no name any more.

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::catalog_sites;
use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CATALOG_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct ClassPageZeroed;

impl Injury for ClassPageZeroed {
    fn name(&self) -> &'static str {
        "class-page-zeroed"
    }

    fn summary(&self) -> &'static str {
        "a page of pg_class is all zeros, and its relations have no name any more"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::once(CATALOG_PAGE)
    }

    fn wound(&self, site: &Site<'_>, _seed: u64) -> Option<Wound> {
        let relation = site.relation?;
        if relation.name != "pg_class" || relation.schema != "pg_catalog" {
            return None;
        }
        let relations = &site.catalog?.relations;
        let lost = catalog_sites::live(site);
        let mut oids = lost.iter().filter_map(catalog_sites::oid);
        let has_files = oids.any(|oid| {
            let relation = relations.get(&oid);
            oid >= FIRST_NORMAL_OID && relation.is_some_and(|relation| relation.filenode != 0)
        });
        let wound = Wound::edit(site, "the whole page set to zero", |page| page.fill(0))?;
        has_files.then(|| {
            wound.must(&["relation-lost"]).may(&[
                followers::LOST_CATALOGS,
                followers::ENTRIES,
                &["zeroed-page-marked-visible"],
            ])
        })
    }

    fn way_out(&self) -> &'static str {
        way_out::CATALOG
    }
}
