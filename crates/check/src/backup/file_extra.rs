//! A base backup holds a file that its manifest does not name.

use pgclinic_cluster::{Cluster, State};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::backup::files::{BackupPlaces, for_each_file};
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_FILE_EXTRA: Rule =
    Rule::from_page(include_str!("../../rules/backup-file-extra.md"));

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
            if manifest.files.contains_key(path) || is_fetched(cluster, path) {
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

/// The server was asked for it: it is of a later moment than the manifest.
fn is_fetched(cluster: &Cluster, path: &str) -> bool {
    match cluster.state() {
        State::Streamed(files) => files.fetched.contains(path),
        _ => false,
    }
}
