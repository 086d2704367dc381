//! Owners, rights and comments of large objects. They are no part of a schema: they follow the
//! objects themselves.

use std::collections::BTreeSet;
use std::io;

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;

use super::super::catalog::{Catalogs, Row};
use super::super::long_text::CatalogRoom;
use super::grants::GrantObject;
use super::item::{Item, Rank, class};
use super::roles::missing_roles;

const METADATA: &str = "pg_largeobject_metadata";

/// Takes what a statement is about, and the statement or why there is none.
type EachDetail<'e, E> = &'e mut dyn FnMut(&str, Result<String, String>) -> Result<(), E>;

/// Hands on what must be said of the objects after they were made: what it is about, and the
/// statement or why there is none. Roles that may be missing come first. Ends with the first error.
pub(crate) fn each_object_detail<E>(
    cluster: &Cluster,
    database: Oid,
    room: &CatalogRoom,
    each: EachDetail<'_, E>,
) -> Result<(), E> {
    let catalog = cluster.catalog(database);
    let shared = cluster.catalog(0);
    object_details_in(&Catalogs::read(cluster, &catalog, &shared, room), each)
}

/// The same from catalogs that were read.
pub(crate) fn object_details_in<E>(
    catalogs: &Catalogs<'_>,
    each: EachDetail<'_, E>,
) -> Result<(), E> {
    let roles = roles(catalogs).map_err(|error| error.to_string());
    if roles.as_ref().is_ok_and(|roles| !roles.is_empty()) || roles.is_err() {
        each("the roles that own large objects", roles)?;
    }
    for row in catalogs.table(METADATA).iter() {
        let item = described(catalogs, row);
        for detail in item.details {
            each(&item.what, detail.map_err(|refusal| refusal.0))?;
        }
    }
    Ok(())
}

fn described(catalogs: &Catalogs<'_>, row: Row<'_>) -> Item {
    let key = (class::LARGE_OBJECT, row.id());
    let what = format!("LARGE OBJECT {}", row.id());
    let mut item = Item::new(Rank::Relation, key, what, Ok(String::new()))
        .owned_by(row.oid("lomowner"))
        .with_rights(GrantObject::LargeObject, row, "lomacl");
    item.add_details(catalogs);
    item
}

/// Makes the roles that are named: many objects have the same owner and rights, so that each pair
/// is looked at once.
fn roles(catalogs: &Catalogs<'_>) -> io::Result<String> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for row in catalogs.table(METADATA).iter() {
        if seen.insert((row.oid("lomowner"), row.bytes("lomacl"))) {
            let mut item = described(catalogs, row);
            item.keep(&catalogs.store);
            items.push(item);
        }
    }
    missing_roles(catalogs, &items)
}
