//! How many bytes a run will read, before it reads the first one: what was not reached counts as
//! skipped, and progress is a share of all.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, DatabaseDirectory, selected};
use pgclinic_format::Oid;

use crate::walker::CheckOptions;

/// Bytes of the files of each database; empty where nobody knows them beforehand: names of
/// relations are in catalogs that are not read yet, and a server lists its files at a price.
pub(super) fn bytes(
    cluster: &Cluster,
    options: &CheckOptions,
    databases: &[Oid],
) -> BTreeMap<Oid, u64> {
    let selection = &options.selection;
    let is_blind = !selection.relations.is_empty()
        || selection.blocks.is_some()
        || options.since.is_some()
        || cluster.is_running()
        || cluster.source().spec().is_server();
    if is_blind {
        return BTreeMap::new();
    }
    let of_home = |home: &DatabaseDirectory| -> u64 {
        let files = cluster.files(home).unwrap_or_default();
        let taken = files
            .iter()
            .filter(|files| selected::fork(selection, files, None));
        taken.map(|files| files.bytes()).sum()
    };
    let of_database = |database: &Oid| {
        let homes = cluster.homes.iter();
        let homes = homes.filter(|home| home.database == *database);
        (*database, homes.map(of_home).sum())
    };
    databases.iter().map(of_database).collect()
}
