//! A base backup holds a file that its manifest does not name.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::backup_files::{BackupPlaces, for_each_file};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_EXTRA: Rule = Rule {
    name: "backup-file-extra",
    severity: Severity::Warning,
    summary: "a base backup holds a file that its manifest does not name",
    explain: "\
The manifest names every file that was backed up, but for the WAL and for what restoring writes \
(`postgresql.auto.conf`, `standby.signal`, `recovery.signal`). This file is not among them.

Most often it is harmless: somebody left a note, a log or the list of a backup program beside the files. It is not, \
if the file looks like one of a relation: the server takes a further segment for rows of the table, and a file \
of a number that it is about to use makes `CREATE TABLE` fail or hold somebody else's pages.

Causes: two backups were written into one folder; a server ran on the backup, so that it is none any more; a copy was \
merged with an older one.

Move the file away unless you know what it is for. If there are many of them, take a new backup.",
};

/// See [`BACKUP_FILE_EXTRA`].
pub struct BackupFileExtra;

impl ClusterCheck for BackupFileExtra {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BACKUP_FILE_EXTRA] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(manifest) = cluster.manifest() else {
            return;
        };
        let places = BackupPlaces::new(cluster);
        let mut tell = |path: &str| {
            if manifest.files.contains_key(path) {
                return;
            }
            let message = "the manifest does not name this file";
            let draft = Draft::new(&BACKUP_FILE_EXTRA, message).place(places.of(path));
            let bytes = cluster.source().len(path).unwrap_or(0);
            out.add(draft.fact("bytes", bytes));
        };
        for gap in for_each_file(cluster.source().as_ref(), &mut tell) {
            out.not_checked(gap);
        }
    }
}
