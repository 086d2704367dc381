//! A file that the manifest of a base backup names is not there.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};
use pgclinic_source::SourceErrorKind;

use crate::backup_files::{BackupPlaces, counts};
use crate::check::ClusterCheck;
use crate::checks::backup_manifest::leaves_the_backup;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_MISSING: Rule = Rule {
    name: "backup-file-missing",
    severity: Severity::Damage,
    summary: "a file that the manifest of a base backup names is not there",
    explain: "\
The manifest names every file that was backed up. This one is not there any more, or something that is no regular \
file has its name.

A server that is started on the backup may not notice for a long time. Where the file was one of a relation, the \
relation is gone or ends too early: `could not open file \"base/…\"`, or rows that are missing without a word. \
A missing file of `pg_xact` or `pg_multixact` makes rows unreadable, or their fate wrong.

Causes: the copy of the backup broke off; somebody removed files; a tablespace was not copied along, or its link in \
`pg_tblspc` leads elsewhere.

Copy the file from where the backup was first written. Where there is no other copy, take a new backup while the \
cluster still lives.",
};

/// See [`BACKUP_FILE_MISSING`].
pub struct BackupFileMissing;

impl ClusterCheck for BackupFileMissing {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BACKUP_FILE_MISSING] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(manifest) = cluster.manifest() else {
            return;
        };
        let places = BackupPlaces::new(cluster);
        for (path, file) in &manifest.files {
            if !counts(path) || leaves_the_backup(path) {
                continue;
            }
            let message = match cluster.source().len(path) {
                Err(error) if error.kind == SourceErrorKind::NotFound => {
                    format!("the file is missing; it had {} bytes", file.size)
                }
                // What may not be read is no damage; the sums tell.
                Ok(_) | Err(_) => continue,
            };
            let draft = Draft::new(&BACKUP_FILE_MISSING, message).place(places.of(path));
            out.add(draft.fact("bytes", file.size));
        }
    }
}
