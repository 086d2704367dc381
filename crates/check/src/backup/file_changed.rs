//! A file of a base backup is not as it was when the backup was taken.

use pgclinic_cluster::Cluster;
use pgclinic_format::digest::{Algorithm, hex};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::backup::files::{BackupPlaces, counts};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_CHANGED: Rule =
    Rule::from_page(include_str!("../../rules/backup-file-changed.md"));

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
