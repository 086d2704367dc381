//! Databases of which `DROP DATABASE` was interrupted. The server lets nobody in, and any of their
//! files may be gone.

use std::collections::BTreeSet;

use pgclinic_cluster::Cluster;
use pgclinic_format::Oid;
use pgclinic_model::document::NotChecked;

use crate::walker::run_ledger::RunLedger;

/// Nobody misses what is not there of it.
pub(super) fn is_one(cluster: &Cluster, database: Oid) -> bool {
    let known = cluster.databases.get(&database);
    known.is_some_and(|database| database.invalid)
}

/// All of them.
pub(super) fn all(cluster: &Cluster) -> BTreeSet<Oid> {
    let databases = cluster.databases.iter();
    let invalid = databases.filter(|(_, own)| own.invalid);
    invalid.map(|(oid, _)| *oid).collect()
}

/// Names each of these.
pub(super) fn tell(cluster: &Cluster, half_dropped: &BTreeSet<Oid>, books: &mut RunLedger) {
    let databases = half_dropped.iter();
    for database in databases.filter_map(|oid| cluster.databases.get(oid)) {
        books.not_checked(NotChecked {
            what: format!(
                "whether files of database {} are missing",
                database.name.as_deref().unwrap_or("?")
            ),
            why: "DROP DATABASE was interrupted, by datconnlimit -2 in pg_database: nobody can connect to it, and DROP DATABASE finishes it".into(),
            inherent: true,
        });
    }
}
