//! The manifest of a base backup cannot be used, or belongs to another backup.

use pgclinic_cluster::{Cluster, Comparison, MANIFEST, ManifestState, file_place};
use pgclinic_format::Lsn;
use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_model::Rule;
use pgclinic_model::document::{FileKind, Level, NotChecked};
use pgclinic_model::plural;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static BACKUP_MANIFEST: Rule = Rule::from_page(include_str!("../../rules/backup-manifest.md"));

/// See [`BACKUP_MANIFEST`].
pub struct BackupManifestCheck;

impl ClusterCheck for BackupManifestCheck {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BACKUP_MANIFEST] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let mut tell = |message: String| {
            let place = file_place(MANIFEST, FileKind::File);
            out.add(Draft::new(&BACKUP_MANIFEST, message).place(place));
        };
        match cluster.manifest_state() {
            None => {}
            Some(ManifestState::Unreadable(why)) => {
                tell(format!("the manifest cannot be read: {why}"));
            }
            Some(ManifestState::Wrong(why)) => tell(format!("this is no manifest: {why}")),
            Some(ManifestState::Read(manifest)) => {
                if !manifest.sum_is_right {
                    tell("the last line is not the checksum of the lines before it".into());
                }
                faults(cluster, manifest).into_iter().for_each(tell);
                tell_gaps(cluster, manifest, out);
            }
        }
    }
}

/// What contradicts the files that the manifest lies beside.
fn faults(cluster: &Cluster, manifest: &BackupManifest) -> Vec<String> {
    let mut faults = Vec::new();
    let own = cluster.control.trusted().map(|own| own.system_identifier);
    if let (Some(told), Some(own)) = (manifest.system_identifier, own)
        && told != own
    {
        faults.push(format!(
            "the manifest is of the cluster {told}, the control file of the cluster {own}"
        ));
    }
    let start = cluster.recovery().map(|recovery| recovery.start.redo);
    let told: Vec<Lsn> = manifest.wal.iter().map(|range| range.start).collect();
    if let Some(start) = start
        && !told.is_empty()
        && !told.contains(&start)
    {
        let told: Vec<String> = told.iter().map(Lsn::to_string).collect();
        let told = told.join(", ");
        faults.push(format!(
            "the manifest is of a backup that begins at {told}, backup_label of one that begins at {start}"
        ));
    }
    let strays = manifest.files.keys().filter(|path| leaves_the_backup(path));
    let strays: Vec<&String> = strays.collect();
    if let Some(first) = strays.first() {
        let count = strays.len();
        faults.push(format!(
            "{count} paths of the manifest lead out of the backup, such as {first:?}"
        ));
    }
    faults
}

/// No file of the backup can have this path.
pub(crate) fn leaves_the_backup(path: &str) -> bool {
    let odd = |part: &str| matches!(part, "" | "." | "..");
    path.contains('\0') || path.split('/').any(odd)
}

/// What this manifest cannot tell, and the WAL that lies elsewhere.
fn tell_gaps(cluster: &Cluster, manifest: &BackupManifest, out: &mut Findings) {
    let without = manifest.files.values().filter(|file| file.sum.is_none());
    let without = without.count();
    if without > 0 {
        out.not_checked(NotChecked {
            what: format!("checksums of {without} of the backup", without = plural(without, "file")),
            why: "the backup was made with --manifest-checksums=NONE; lengths are compared, and pages by their own checksums".into(),
            inherent: true,
        });
    }
    if manifest.foreign_names > 0 {
        out.not_checked(NotChecked {
            what: format!("{} of the backup", plural(manifest.foreign_names, "file")),
            why: "their names are not UTF-8".into(),
            inherent: false,
        });
    }
    if !cluster.may_compare(Comparison::ManifestWithWal) {
        return;
    }
    let here = cluster.replay().map(|replay| replay.end.record);
    for range in &manifest.wal {
        if here.is_none_or(|here| here < range.end) {
            let what = format!(
                "WAL from {} to {} of timeline {}",
                range.start, range.end, range.timeline
            );
            let why =
                "not all of it lies in pg_wal: the backup can only be restored with its archive";
            out.not_checked(NotChecked {
                what,
                why: why.into(),
                inherent: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::leaves_the_backup;

    #[test]
    fn paths_out_of_the_backup_are_seen() {
        for path in ["/etc/passwd", "../x", "base/../../x", "base//1", "", "a\0"] {
            assert!(leaves_the_backup(path), "{path:?}");
        }
        assert!(!leaves_the_backup("base/5/16384.1"));
    }
}
