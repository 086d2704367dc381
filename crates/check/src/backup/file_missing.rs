//! A file that the manifest of a base backup names is not there.

use pgclinic_cluster::Cluster;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_source::SourceErrorKind;

use crate::backup::files::{BackupPlaces, counts};
use crate::backup::manifest::leaves_the_backup;
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_MISSING: Rule =
    Rule::from_page(include_str!("../../rules/backup-file-missing.md"));

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
