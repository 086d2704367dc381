//! One database after the other, each with its catalogs and forks.

use pgclinic_cluster::inventory::default_home;
use pgclinic_cluster::{Cluster, DatabaseContext, DatabaseDirectory};
use pgclinic_format::Oid;

/// Hands out the shared relations and every database. Directories that cannot be listed have no
/// forks; the cluster keeps their names.
pub(super) fn each_database(cluster: &Cluster, each: &mut dyn FnMut(DatabaseContext<'_>)) {
    let numbers: Vec<Oid> = std::iter::once(0)
        .chain(cluster.databases.keys().copied())
        .collect();
    for database in numbers {
        let homes = cluster.homes.iter();
        let homes = homes.filter(|home| home.database == database);
        let forks: Vec<_> = homes
            .filter_map(|home| cluster.files(home).ok())
            .flatten()
            .collect();
        let catalog = cluster.catalog(database);
        each(DatabaseContext {
            cluster,
            catalog: &catalog,
            forks: &forks,
        });
    }
}

/// The directory in the database's own tablespace, with its catalogs, map and version; those in
/// other tablespaces hold relations alone. `global` is one, too.
pub(super) fn is_first_home(cluster: &Cluster, home: &DatabaseDirectory) -> bool {
    let database = cluster.databases.get(&home.database);
    let is_named = database.is_some_and(|own| own.name.is_some());
    home.database == 0 || (is_named && default_home(cluster, home.database) == Some(home))
}
