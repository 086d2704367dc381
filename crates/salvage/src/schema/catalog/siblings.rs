//! Rows that every database is born with, from another database of the cluster where this one lost
//! them: all of them were copied from the templates, so that types, functions and operators of the
//! system have the same rows in each.

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{plural, verb_of};

use super::Catalogs;
use super::read::{Reader, files_of};
use super::table::Table;
use crate::schema::long_text::CatalogRoom;

/// The columns by which a row of the system is known.
const IDENTITIES: [&str; 3] = ["oid", "aggfnoid", "rngtypid"];
/// Files and rights of relations are each database's own.
const OWN: &str = "pg_class";
/// The catalogs of all databases have no sibling.
const SHARED: [&str; 4] = [
    "pg_authid",
    "pg_database",
    "pg_tablespace",
    "pg_subscription",
];

/// A catalog that lost rows.
pub(super) struct Gap {
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
}

impl Catalogs<'_> {
    /// Puts rows of the system among those of the catalogs that lost some.
    pub(super) fn add_rows_of_siblings(
        &mut self,
        cluster: &Cluster,
        room: &CatalogRoom,
        gaps: &[Gap],
    ) {
        let known = |gap: &&Gap| {
            gap.name != OWN && !SHARED.contains(&gap.name) && identity_of(gap).is_some()
        };
        let gaps: Vec<&Gap> = gaps.iter().filter(known).collect();
        if gaps.is_empty() {
            return;
        }
        let own = self.catalog.database;
        let siblings = cluster
            .databases
            .keys()
            .filter(|oid| **oid != own && **oid != 0);
        for sibling in siblings.copied() {
            let catalog = cluster.catalog(sibling);
            if !catalog.is_blind() {
                self.take_from(cluster, &catalog, room, &gaps);
            }
        }
    }

    fn take_from(
        &mut self,
        cluster: &Cluster,
        sibling: &Catalog,
        room: &CatalogRoom,
        gaps: &[&Gap],
    ) {
        let files = files_of(cluster, sibling.database);
        let store = self.store.clone();
        let mut reader = Reader {
            cluster,
            catalog: sibling,
            files: &files,
            room,
            store: &store,
            words: cluster.words(sibling.database),
            troubles: Vec::new(),
            gaps: Vec::new(),
            lost: Vec::new(),
        };
        for gap in gaps {
            let (Some(identity), Some(theirs)) =
                (identity_of(gap), reader.table(gap.name, gap.keys))
            else {
                continue;
            };
            let Some(own) = self.tables.get_mut(gap.name) else {
                continue;
            };
            let taken = take_rows(own, &theirs, identity);
            if taken > 0 {
                gap.keys.iter().for_each(|key| own.key(key));
                self.troubles.push(format!(
                    "{name}: {rows} of the system {are} taken from another database ({database})",
                    name = gap.name,
                    rows = plural(taken, "row"),
                    are = verb_of(taken, "are"),
                    database = sibling.database_name.as_deref().unwrap_or("without a name"),
                ));
            }
        }
    }
}

fn identity_of(gap: &Gap) -> Option<&'static str> {
    let mut identities = IDENTITIES.into_iter();
    identities.find(|identity| gap.keys.contains(identity))
}

/// How many rows were missing.
fn take_rows(own: &mut Table, theirs: &Table, identity: &'static str) -> usize {
    let is_missing = |own: &Table, oid: Oid| {
        oid != 0 && oid < FIRST_NORMAL_OID && own.rows_where(identity, oid).is_empty()
    };
    let missing: Vec<_> = theirs
        .iter()
        .filter(|row| is_missing(own, row.oid(identity)))
        .collect();
    let taken = missing.iter().filter(|row| own.push_row(row).is_ok());
    taken.count()
}
