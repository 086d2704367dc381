//! The databases of a cluster: rows of `pg_database`, directories, and the indexes of `pg_database`
//! where its rows are lost.

use std::collections::BTreeMap;

use pgclinic_format::oid::{DEFAULT_TABLESPACE, PG_DATABASE};
use pgclinic_format::{Fork, MultiXactId, Oid, Xid};
use pgclinic_model::plural;

use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::columns::ColumnNames;
use crate::comparison::Comparison;
use crate::database::Database;
use crate::error::ReadGap;
use crate::files::DatabaseDirectory;
use crate::heap_scan::HeapScan;
use crate::row_places::RowPlaces;
use crate::witness::lost_databases;

/// What is not known where a page of `pg_database` cannot be read.
pub(crate) const DATABASE_NAMES: &str = "names of databases";

/// The same once the WAL of a running server was applied: now its indexes can be compared with it.
pub(crate) fn read_databases_again(cluster: &mut Cluster) {
    cluster
        .troubles
        .retain(|trouble| trouble.what != DATABASE_NAMES);
    read_databases(cluster);
}

/// Reads them, with what could not be read.
pub(crate) fn read_databases(cluster: &mut Cluster) {
    let mut databases: BTreeMap<Oid, Database> = BTreeMap::new();
    for home in cluster.homes.iter().filter(|home| home.database != 0) {
        let unnamed = || Database::unnamed(home);
        databases.entry(home.database).or_insert_with(unnamed);
    }
    let global = DatabaseDirectory::global();
    let files = cluster.fork_files(
        &global,
        cluster.mapped_file(&global, PG_DATABASE),
        Fork::Main,
    );
    let columns = ColumnNames::built_in(cluster.layout.pg_database);
    let mut rows = HeapScan::new(cluster, &files, &columns.layouts).noting_places();
    let (oid, name) = (columns.index("oid"), columns.index("datname"));
    let (encoding, tablespace) = (columns.index("encoding"), columns.index("dattablespace"));
    let limit = columns.index("datconnlimit");
    let (frozen, min_multi) = (columns.index("datfrozenxid"), columns.index("datminmxid"));
    rows.each_that_may_count(|row| {
        let (Some(oid), Some(name)) = (row.u32(oid), row.name_bytes(name)) else {
            return;
        };
        let encoding = row.u32(encoding).map(u32::cast_signed);
        let database = Database {
            oid,
            name: Some(CatalogEncoding::of(encoding).shared().readable(name)),
            encoding,
            tablespace: row.u32(tablespace).unwrap_or(DEFAULT_TABLESPACE),
            invalid: row.u32(limit) == Some((-2i32).cast_unsigned()),
            frozen_xid: row.u32(frozen).map(Xid),
            min_multi: row.u32(min_multi).map(MultiXactId),
        };
        databases.insert(oid, database);
    });
    let trouble = (!rows.is_whole()).then(|| {
        let why = format!(
            "{} and {} of pg_database cannot be read",
            plural(rows.unreadable.len(), "page"),
            plural(rows.broken_rows, "row")
        );
        ReadGap::new(DATABASE_NAMES, why)
    });
    let places = rows.places();
    let is_whole = |places: &RowPlaces| places.is_sound() && !places.has_zeroed();
    cluster.database_rows_are_whole = trouble.is_none() && places.as_ref().is_some_and(is_whole);
    cluster.leftovers.take();
    cluster.troubles.extend(trouble);
    find_lost_databases(cluster, &global, places.as_ref(), &mut databases);
    cluster.databases = databases;
}

/// Names those whose rows are lost.
fn find_lost_databases(
    cluster: &mut Cluster,
    global: &DatabaseDirectory,
    places: Option<&RowPlaces>,
    databases: &mut BTreeMap<Oid, Database>,
) {
    let Some(places) = places else {
        return;
    };
    let named = lost_databases(cluster, global, places, databases);
    cluster.lost_databases = named.lost;
    let proves = cluster.may_compare(Comparison::CatalogEntriesWithPages);
    for lost in &cluster.lost_databases {
        if let Some(database) = databases.get_mut(&lost.oid) {
            database.name.clone_from(&lost.name);
        }
        if !proves {
            continue;
        }
        let name = lost.name.clone().unwrap_or_else(|| lost.oid.to_string());
        let why = "its row in pg_database is lost, and with it encoding, owner and settings";
        let what = format!("what pg_database says of database {name}");
        cluster.troubles.push(ReadGap::new(what, why));
    }
    for absent in named.without_directory.iter().filter(|_| proves) {
        let name = absent
            .name
            .clone()
            .unwrap_or_else(|| absent.oid.to_string());
        let state = if absent.is_unread {
            "the page of its row cannot be read"
        } else {
            "its row is lost"
        };
        let why = format!(
            "an index of pg_database names it (OID {oid}), {state}, and it has no directory: it was dropped, or is lost with everything in it",
            oid = absent.oid
        );
        cluster
            .troubles
            .push(ReadGap::new(format!("database {name}"), why));
    }
}
