//! A directory with the number of a database that `pg_database` does not know.

use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static ORPHAN_DATABASE_DIRECTORY: Rule =
    Rule::from_page(include_str!("../../rules/orphan-database-directory.md"));

/// See [`ORPHAN_DATABASE_DIRECTORY`].
pub struct OrphanDatabaseDirectory;

impl ClusterCheck for OrphanDatabaseDirectory {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ORPHAN_DATABASE_DIRECTORY] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        if !cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let is_nameless = |oid: u32| {
            let known = cluster.databases.get(&oid);
            oid != 0 && known.is_none_or(|known| known.name.is_none())
        };
        // One that the indexes or WAL still name is told as lost.
        let logged = cluster.homes_lost_by_wal();
        let is_lost = |oid: u32| {
            let is_named = cluster.lost_databases.iter().any(|lost| lost.oid == oid);
            is_named || logged.iter().any(|home| home.database == oid)
        };
        let homes = cluster.homes.iter();
        for home in homes.filter(|home| is_nameless(home.database) && !is_lost(home.database)) {
            let message = format!("no row of pg_database has the number {}", home.database);
            let mut place = file_place(&home.folder, FileKind::File);
            place.database_oid = Some(home.database);
            out.add(Draft::new(&ORPHAN_DATABASE_DIRECTORY, message).place(place));
        }
    }
}
