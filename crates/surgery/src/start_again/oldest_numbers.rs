//! The oldest transaction and multixact that any row may have.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::WalCounters;
use pgclinic_format::{MultiXactId, Oid, Xid};

use super::ground::Known;

/// The oldest transaction that a row of a living database may have, and which database that is.
pub(super) fn oldest_xid(cluster: &Cluster, wal: &WalCounters) -> (Known<Xid>, Oid) {
    let living = cluster.databases.values();
    let living = living.filter(|own| own.name.is_some() && !own.invalid);
    let all = living.filter_map(|own| Some((own.frozen_xid.filter(|xid| xid.is_normal())?, own)));
    let oldest = all.reduce(|one, other| if other.0.precedes(one.0) { other } else { one });
    if let Some((xid, database)) = oldest {
        let name = database.name.clone().unwrap_or_default();
        let why = format!("datfrozenxid of database {name}, the oldest of all");
        return (Known::new(xid, why), database.oid);
    }
    let noted = cluster
        .control
        .trusted()
        .map(|own| own.checkpoint.oldest_xid);
    let noted = noted.map(|xid| Known::new(xid, "the control file"));
    let by_wal = wal
        .checkpoint
        .as_ref()
        .map(|(at, own)| Known::new(own.oldest_xid, format!("the checkpoint record at {at}")));
    let first = || {
        Known::new(
            Xid::FIRST_NORMAL,
            "pg_database cannot be read: the first one",
        )
    };
    (noted.or(by_wal).unwrap_or_else(first), 1)
}

/// Likewise of multixacts.
pub(super) fn oldest_multi(cluster: &Cluster, wal: &WalCounters) -> (Known<MultiXactId>, Oid) {
    let living = cluster.databases.values();
    let living = living.filter(|own| own.name.is_some() && !own.invalid);
    let all = living.filter_map(|own| Some((own.min_multi.filter(|multi| multi.0 > 0)?, own)));
    let oldest = all.reduce(|one, other| if other.0.precedes(one.0) { other } else { one });
    if let Some((multi, database)) = oldest {
        let name = database.name.clone().unwrap_or_default();
        let why = format!("datminmxid of database {name}, the oldest of all");
        return (Known::new(multi, why), database.oid);
    }
    let noted = cluster
        .control
        .trusted()
        .map(|own| own.checkpoint.oldest_multi);
    let noted = noted.map(|multi| Known::new(multi, "the control file"));
    let by_wal = wal
        .checkpoint
        .as_ref()
        .map(|(at, own)| Known::new(own.oldest_multi, format!("the checkpoint record at {at}")));
    let first = || {
        let why = "pg_database cannot be read: the first one";
        Known::new(MultiXactId::FIRST, why)
    };
    (noted.or(by_wal).unwrap_or_else(first), 1)
}
