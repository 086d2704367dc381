//! Pg_class counts one column more than a relation has.

use pgclinic_format::build::put_u16;

use super::catalog_sites;
use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CATALOG_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CatalogColumnCount;

impl Injury for CatalogColumnCount {
    fn name(&self) -> &'static str {
        "catalog-column-count"
    }

    fn summary(&self) -> &'static str {
        "pg_class counts one column more than a relation has"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(CATALOG_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, natts) = catalog_sites::value(site, seed, "pg_class", "relnatts")?;
        let count = u16::from_le_bytes(*row.tuple.bytes().get(natts..)?.first_chunk()?);
        let more = count.checked_add(1).filter(|_| count > 0)?;
        let wound = Wound::edit_row(site, &row, format!("relnatts set to {more}"), |tuple| {
            put_u16(tuple, natts, more);
        })?;
        let wound = wound.must(&["catalog-attributes-missing"]);
        Some(wound.may(&[followers::LOST_CATALOGS, followers::ATTRIBUTES]))
    }

    fn way_out(&self) -> &'static str {
        way_out::CATALOG
    }
}
