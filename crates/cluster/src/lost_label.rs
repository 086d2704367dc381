//! A base backup whose `backup_label` is lost. Its control file names a checkpoint that is too
//! late: files that were copied before it are made whole only by WAL from before.

use pgclinic_format::backup_manifest::WalRange;
use pgclinic_format::control_file::State;
use pgclinic_format::{Lsn, incremental};
use pgclinic_source::Presence;

use crate::backup::ManifestState;
use crate::cluster::Cluster;

const LABEL: &str = "backup_label";

impl Cluster {
    /// The WAL that such a backup needs, as its manifest says; nothing where the label is there, or
    /// a server has run on the files since.
    pub fn lost_label(&self) -> Option<WalRange> {
        let source = self.source().as_ref();
        let absent = |path: &str| Presence::of_file(source, path).is_missing();
        // The first start from a backup renames it.
        if !absent(LABEL) || !absent("backup_label.old") {
            return None;
        }
        let control = self.control.trusted()?;
        let Some(ManifestState::Read(manifest)) = ManifestState::read(source) else {
            return None;
        };
        let range = *manifest.wal.first().filter(|_| manifest.sum_is_right)?;
        // A server that ran since has written checkpoints after the backup.
        let is_of_backup = control.checkpoint_lsn <= range.end
            && control.state != State::ShutDown
            && control.backup_start == Lsn(0)
            && control.min_recovery_point <= range.end;
        let is_stub = |path: &String| {
            let name = path
                .rsplit_once('/')
                .map_or(path.as_str(), |(_, name)| name);
            name.starts_with(incremental::PREFIX)
        };
        // Without its label nothing else keeps a server from starting on an incremental backup.
        let is_incremental = manifest.files.keys().any(is_stub);
        let had_label = manifest.files.contains_key(LABEL);
        (is_of_backup && !is_incremental && had_label).then_some(range)
    }
}
