//! What injuries of catalogs ask of a place.

use pgclinic_cluster::Visibility;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Attribute, Attributes, Oid};

use crate::site::{Row, Site, choose};

/// The rows of the page that are visible to everybody.
pub(super) fn live<'a>(site: &'a Site<'_>) -> Vec<Row<'a>> {
    let visibility = Visibility::new(site.cluster);
    let is_visible = |row: &Row<'_>| visibility.is_visible(row.tuple);
    site.rows().into_iter().filter(is_visible).collect()
}

/// Where a column of this catalog stands in one of the live rows about users' objects, by the seed. Rows of
/// `pg_description` are taken whatever they are about.
pub(super) fn value<'a>(
    site: &'a Site<'_>,
    seed: u64,
    catalog: &str,
    column: &str,
) -> Option<(Row<'a>, usize)> {
    let relation = site
        .relation
        .filter(|relation| relation.name == catalog && relation.schema == "pg_catalog")?;
    let columns = relation.columns.as_ref()?;
    let index = columns.iter().position(|known| known.name == column)?;
    let layouts = relation.layouts.as_deref()?;
    let any = catalog == "pg_description";
    let rows: Vec<Row<'a>> = live(site)
        .into_iter()
        .filter(|row| any || oid(row).is_some_and(|oid| oid >= FIRST_NORMAL_OID))
        .collect();
    let row = *choose(&rows, seed)?;
    match Attributes::new(row.tuple, layouts).nth(index)? {
        Ok(Attribute::Value(range)) => Some((row, range.start)),
        _ => None,
    }
}

/// The first column of a row, where it is an OID.
pub(super) fn oid(row: &Row<'_>) -> Option<Oid> {
    let at = usize::from(row.tuple.t_hoff());
    Some(Oid::from_le_bytes(
        *row.tuple.bytes().get(at..)?.first_chunk()?,
    ))
}
