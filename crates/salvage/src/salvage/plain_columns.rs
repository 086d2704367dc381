//! Generated columns of which the expression is lost: where the schema is made again they are plain
//! ones, with the values that are stored.

use pgclinic_cluster::{Catalog, Cluster, Generated, Relation};
use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;

use super::{Destination, SalvageOptions, described_columns, room_of};
use crate::schema::{Catalogs, columns_made_plain};

/// The catalog of a database with its columns as they are written.
pub(super) fn catalog_of(cluster: &Cluster, database: Oid, options: &SalvageOptions) -> Catalog {
    let mut catalog = cluster.catalog(database);
    let makes_schema =
        options.ddl.is_some() || matches!(options.destination, Destination::Server(_));
    if makes_schema && catalog.relations.values().any(stores_generated) {
        let shared = cluster.catalog(0);
        let described = described_columns(cluster, &catalog, &options.given);
        let room = room_of(options).of_columns();
        let catalogs = Catalogs::read_with(cluster, (&catalog, &shared), &room, &described);
        let plain = columns_made_plain(&catalogs);
        drop(catalogs);
        for (table, number) in plain {
            let relation = catalog.relations.get_mut(&table);
            let columns = relation.and_then(|relation| relation.columns.as_mut());
            let mut columns = columns.into_iter().flatten();
            if let Some(column) = columns.find(|column| column.attnum == number) {
                column.generated = Generated::No;
            }
        }
    }
    catalog
}

fn stores_generated(relation: &Relation) -> bool {
    let mut columns = relation.columns.iter().flatten();
    relation.oid >= FIRST_NORMAL_OID && columns.any(|column| column.generated == Generated::Stored)
}
