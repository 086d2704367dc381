//! A database directory that is older than its row in `pg_database`, or another database's.
//!
//! `datfrozenxid` is the oldest `relfrozenxid` of a database, and no VACUUM makes one of them
//! older: a table whose `relfrozenxid` is before it has its row in another database's `pg_class`,
//! or in one of an earlier day. Truth: `vac_update_datfrozenxid` in
//! `src/backend/commands/vacuum.c`.

use pgclinic_cluster::{Catalog, Cluster, Relation};
use pgclinic_model::document::NotChecked;

use super::plan::not_salvaged;
use crate::shape::database_name;

/// What it makes doubtful: every row of the database.
pub(super) fn gap(cluster: &Cluster, catalog: &Catalog) -> Option<NotChecked> {
    let own = cluster.databases.get(&catalog.database)?;
    let frozen = own.frozen_xid.filter(|xid| xid.is_normal())?;
    // What recovery brings may be either of the two.
    if cluster.is_running() || cluster.is_partial() || cluster.needs_recovery() {
        return None;
    }
    let is_older = |relation: &&Relation| {
        let xid = relation.relfrozenxid;
        !relation.shared && xid.is_normal() && xid.precedes(frozen)
    };
    let older = catalog.relations.values().find(is_older)?;
    let what = format!(
        "whether the tables of database {} are its own, and of today",
        database_name(catalog)
    );
    let why = format!(
        "relfrozenxid of {} is {}, before datfrozenxid {frozen} of the database: its directory is another database's or an older copy, or pg_database is of another moment",
        older.qualified_name(),
        older.relfrozenxid
    );
    Some(not_salvaged(&what, &why))
}
