//! A database whose row in `pg_database` is lost.

use pgclinic_cluster::inventory::is_remade;
use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static DATABASE_LOST: Rule = Rule::from_page(include_str!("../../rules/database-lost.md"));

/// See [`DATABASE_LOST`].
pub struct DatabaseLost;

impl ClusterCheck for DatabaseLost {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&DATABASE_LOST] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        if !cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        report_logged(cluster, out);
        let proven = cluster.lost_databases.iter();
        for lost in proven.filter(|lost| !lost.is_unread && !is_remade(cluster, lost.oid)) {
            let homes = cluster.homes.iter();
            let mut folders = homes.filter(|home| home.database == lost.oid);
            let folder = folders.next().map_or("", |home| home.folder.as_str());
            let name = lost.name.as_deref().unwrap_or("without a name");
            let message = format!(
                "the row of database {name} (OID {}, directory {folder}) in pg_database is lost: its indexes still name it",
                lost.oid
            );
            let mut place = file_place(folder, FileKind::File);
            place.database.clone_from(&lost.name);
            place.database_oid = Some(lost.oid);
            let draft = Draft::new(&DATABASE_LOST, message)
                .fact("pg_database_ctid", lost.row.to_string())
                .server_says(format!("FATAL:  database \"{name}\" does not exist"));
            out.add(draft.place(place));
        }
    }
}

/// Directories that neither `pg_database` nor its indexes name, and in which WAL has rows that
/// committed transactions wrote.
fn report_logged(cluster: &Cluster, out: &mut Findings) {
    for home in cluster.homes_lost_by_wal() {
        let message = format!(
            "the row of database {oid} (directory {directory}) in pg_database is lost: WAL has rows that committed transactions wrote there, and no record that removes it",
            oid = home.database,
            directory = home.folder,
        );
        let mut place = file_place(&home.folder, FileKind::File);
        place.database_oid = Some(home.database);
        out.add(Draft::new(&DATABASE_LOST, message).place(place));
    }
}
