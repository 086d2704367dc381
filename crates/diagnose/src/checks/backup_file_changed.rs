//! A file of a base backup is not as it was when the backup was taken.

use pgclinic_cluster::Cluster;
use pgclinic_format::digest::{Algorithm, hex};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::backup_files::{BackupPlaces, counts};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_CHANGED: Rule = Rule {
    name: "backup-file-changed",
    severity: Severity::Damage,
    summary: "a file of a base backup is not as it was when the backup was taken",
    explain: "\
The manifest of a base backup keeps the length and a checksum of every file, made from the bytes that the server \
sent. The file has another length here, or its bytes give another checksum. It was changed, cut or damaged after the \
backup was taken.

This tells two things apart that look alike. A damaged page in a file whose checksum is right was damaged \
before the backup, in the cluster itself: look there, and at older backups. A damaged page in a file that changed was \
sound when it was sent: the storage of the backup, or the way to it, is to blame.

Where every page of the file is sound, the change lies in bytes that no page checksum covers, or whole pages were \
exchanged; no other check can see that.

Copy the file from where the backup was first written. Do not restore this backup without it, and look for other \
files on the same storage.",
};

/// See [`BACKUP_FILE_CHANGED`]. Checksums are made by the pass over the pages, and told afterwards.
pub struct BackupFileChanged;

impl ClusterCheck for BackupFileChanged {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BACKUP_FILE_CHANGED] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let Some(manifest) = cluster.manifest() else {
            return;
        };
        let places = BackupPlaces::new(cluster);
        for (path, file) in manifest.files.iter().filter(|(path, _)| counts(path)) {
            let Ok(len) = cluster.source().len(path) else {
                continue;
            };
            if len != file.size {
                let (was, place) = (file.size, places.of(path));
                let message =
                    format!("the file has {len} bytes, and had {was} when the backup was taken");
                let draft = Draft::new(&BACKUP_FILE_CHANGED, message).place(place);
                out.add(draft.fact("bytes", len).fact("bytes_in_manifest", was));
            }
        }
    }
}

/// For a file of the right length with another checksum than the manifest's.
pub(crate) fn other_sum(algorithm: Algorithm, is: &[u8], was: &[u8]) -> Draft {
    let (is, was) = (hex(is), hex(was));
    let message =
        format!("the {algorithm} of the file is {is}, and was {was} when the backup was taken");
    Draft::new(&BACKUP_FILE_CHANGED, message)
        .fact("algorithm", algorithm.name())
        .fact("sum", is)
        .fact("sum_in_manifest", was)
}
