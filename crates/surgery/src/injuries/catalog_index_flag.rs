//! Pg_class says that a table with indexes has none.

use super::catalog_sites;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CATALOG_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CatalogIndexFlag;

impl Injury for CatalogIndexFlag {
    fn name(&self) -> &'static str {
        "catalog-index-flag"
    }

    fn summary(&self) -> &'static str {
        "pg_class says that a table with indexes has none"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(CATALOG_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, flag) = catalog_sites::value(site, seed, "pg_class", "relhasindex")?;
        let oid = catalog_sites::oid(&row)?;
        let relations = &site.catalog?.relations;
        let indexed = relations.values().any(|relation| {
            let index = relation.index.as_ref();
            index.is_some_and(|index| index.table == oid && index.live)
        });
        let wound = Wound::edit_row(site, &row, "relhasindex set to false", |tuple| {
            if let Some(byte) = tuple.get_mut(flag) {
                *byte = 0;
            }
        })?;
        indexed.then(|| wound.must(&["catalog-index-unseen"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::CATALOG
    }
}
