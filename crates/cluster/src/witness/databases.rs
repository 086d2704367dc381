//! Databases whose rows in `pg_database` are lost: its two indexes still name them, and their
//! directories are there.
//!
//! Truth: `src/include/catalog/pg_database.h`.

use std::collections::BTreeMap;

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_DATABASE_DATNAME_INDEX, PG_DATABASE_OID_INDEX};
use pgclinic_format::types::Tid;

use super::entries::{NAME, WORD, each_entry};
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::database::{Database, LostDatabase};
use crate::files::DatabaseDirectory;
use crate::row_places::{PlaceState, RowPlaces};

/// Databases that an index of `pg_database` names, and no row that is there.
#[derive(Default)]
pub(crate) struct NamedByIndexes {
    /// Those whose directories are there.
    pub(crate) lost: Vec<LostDatabase>,
    /// Those without one: dropped, or lost with everything in them.
    pub(crate) without_directory: Vec<LostDatabase>,
}

/// Entries of databases that were dropped stay until VACUUM comes, and so do directories that an
/// interrupted `CREATE DATABASE` left: only both together prove a database. An entry alone proves
/// nothing where the page of its row is lost; where that is there, a dropped database left its row.
pub(crate) fn lost_databases(
    cluster: &Cluster,
    global: &DatabaseDirectory,
    places: &RowPlaces,
    known: &BTreeMap<Oid, Database>,
) -> NamedByIndexes {
    let mut lost: BTreeMap<Tid, LostDatabase> = BTreeMap::new();
    let has_row = |oid: Oid| known.get(&oid).is_some_and(|known| known.name.is_some());
    each_entry(
        cluster,
        global,
        PG_DATABASE_OID_INDEX,
        &[WORD],
        &mut |row, keys| {
            let state = places.state(row);
            let is_unread = state == PlaceState::Unread;
            let oid = keys.oid(0).filter(|oid| !has_row(*oid));
            let is_there = state == PlaceState::Row;
            if let Some(oid) = oid.filter(|_| !is_there) {
                let name = None;
                lost.insert(
                    row,
                    LostDatabase {
                        oid,
                        name,
                        row,
                        is_unread,
                    },
                );
            }
        },
    );
    if !lost.is_empty() {
        each_entry(
            cluster,
            global,
            PG_DATABASE_DATNAME_INDEX,
            &[NAME],
            &mut |row, keys| {
                if let Some(lost) = lost.get_mut(&row) {
                    lost.name = Some(CatalogEncoding::default().shared().readable(keys.name(0)));
                }
            },
        );
    }
    // The later row of a database that was renamed has its name.
    let by_oid: BTreeMap<Oid, LostDatabase> =
        lost.into_values().map(|lost| (lost.oid, lost)).collect();
    let (lost, without_directory) = by_oid
        .into_values()
        .partition(|lost| known.contains_key(&lost.oid));
    NamedByIndexes {
        lost,
        without_directory,
    }
}
