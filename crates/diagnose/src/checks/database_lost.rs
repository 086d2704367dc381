//! A database whose row in `pg_database` is lost.

use pgclinic_cluster::{Cluster, file_place};
use pgclinic_model::document::{Kind, Level};
use pgclinic_model::{Rule, Severity};

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::inventory::is_remade;

/// The rule.
pub static DATABASE_LOST: Rule = Rule {
    name: "database-lost",
    severity: Severity::Damage,
    summary: "a database whose row in pg_database is lost",
    explain: "\
The indexes of `pg_database` still name a database and its directory is there, but its row is gone: the entries lead to a \
page that is zeroed or cut off, or to a line pointer without a row.

Nobody can connect to it: `database \"…\" does not exist`. Its files lie there untouched, and look like those of a \
database that was dropped.

Usual causes: the page of `pg_database` was zeroed (by the storage, by `zero_damaged_pages`, by a repair of the file \
system), overwritten, or the file was cut.

Do not delete the directory. Copy the data directory, and take the page of `pg_database` from a backup or a standby of the \
same moment, or restore the cluster with its WAL. `pgclinic salvage` reads the database under its true name.",
};

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
        if !cluster.is_settled() {
            return;
        }
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
            let mut place = file_place(folder, Kind::File);
            place.database.clone_from(&lost.name);
            place.database_oid = Some(lost.oid);
            let draft = Draft::new(&DATABASE_LOST, message)
                .fact("pg_database_ctid", lost.row.to_string())
                .server_says(format!("FATAL:  database \"{name}\" does not exist"));
            out.add(draft.place(place));
        }
    }
}
