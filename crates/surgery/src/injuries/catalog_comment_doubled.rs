//! Two comments in pg_description are of the same object.

use pgclinic_format::build::put_u32;

use super::catalog_sites;
use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{CATALOG_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct CatalogCommentDoubled;

impl Injury for CatalogCommentDoubled {
    fn name(&self) -> &'static str {
        "catalog-comment-doubled"
    }

    fn summary(&self) -> &'static str {
        "two comments in pg_description are of the same object"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(CATALOG_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        const CLASS: std::ops::Range<usize> = 4..8;
        let (row, own) = catalog_sites::value(site, seed, "pg_description", "objoid")?;
        let class = row.tuple.bytes().get(own + CLASS.start..own + CLASS.end)?;
        // Another comment of the same page and the same catalog.
        let other = catalog_sites::live(site).into_iter().find(|other| {
            let at = usize::from(other.tuple.t_hoff());
            let bytes = other.tuple.bytes();
            other.item != row.item
                && bytes.get(at + CLASS.start..at + 12)
                    == row.tuple.bytes().get(own + CLASS.start..own + 12)
        });
        let other = other.filter(|_| !class.is_empty())?;
        let oid = catalog_sites::oid(&other)?;
        let wound = Wound::edit_row(site, &row, format!("objoid set to {oid}"), |tuple| {
            put_u32(tuple, own, oid);
        })?;
        Some(
            wound
                .must(&["catalog-key-doubled"])
                .may(&[followers::ENTRIES]),
        )
    }

    fn way_out(&self) -> &'static str {
        way_out::CATALOG
    }
}
