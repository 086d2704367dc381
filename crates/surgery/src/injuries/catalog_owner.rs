//! The owner of a table is a role that does not exist.

use pgclinic_format::build::put_u32;

use super::catalog_sites;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CATALOG_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CatalogOwner;

impl Injury for CatalogOwner {
    fn name(&self) -> &'static str {
        "catalog-owner"
    }

    fn summary(&self) -> &'static str {
        "the owner of a table is a role that does not exist"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(CATALOG_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, owner) = catalog_sites::value(site, seed, "pg_class", "relowner")?;
        let wound = Wound::edit_row(site, &row, "relowner set to 4000000000", |tuple| {
            put_u32(tuple, owner, 4_000_000_000);
        })?;
        Some(wound.must(&["catalog-reference-missing"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::CATALOG
    }
}
