//! Files of a base backup that are not as its manifest has them: rows may be missing that no index
//! and no page tells of.

use pgclinic_cluster::{Cluster, ManifestState, file_sums};
use pgclinic_format::backup_manifest::{BackupManifest, ManifestFile};
use pgclinic_format::digest::Algorithm;
use pgclinic_model::document::NotChecked;
use pgclinic_model::{Progress, plural};
use pgclinic_source::Presence;

use super::SalvageOptions;
use super::plan::not_salvaged;

/// Where rows lie, and what becomes of them.
const FOLDERS: [&str; 5] = [
    "base/",
    "global/",
    "pg_tblspc/",
    "pg_xact/",
    "pg_multixact/",
];
/// So many are named.
const NAMED_MAX: usize = 5;

/// What the manifest says of them, which a server that starts on the backup does not ask.
pub(super) fn gaps(
    cluster: &Cluster,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Vec<NotChecked> {
    let is_one_backup = cluster.links().is_empty() && !cluster.is_partial();
    match cluster.manifest_state().filter(|_| is_one_backup) {
        None => Vec::new(),
        Some(ManifestState::Wrong(why) | ManifestState::Unreadable(why)) => vec![not_asked(why)],
        Some(ManifestState::Read(manifest)) => {
            let own = "its own checksum is wrong: what it says may be another's";
            let own = (!manifest.sum_is_right).then(|| not_asked(own));
            let mut gaps = compared(cluster, manifest, options, progress);
            gaps.extend(own);
            gaps
        }
    }
}

fn not_asked(why: &str) -> NotChecked {
    let what = "whether files of the backup are as they were, by backup_manifest";
    not_salvaged(what, why)
}

fn compared(
    cluster: &Cluster,
    manifest: &BackupManifest,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Vec<NotChecked> {
    let of_rows = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let files = manifest.files.iter();
    let files: Vec<(&str, &ManifestFile)> = files
        .map(|(path, file)| (path.as_str(), file))
        .filter(|(path, _)| of_rows(path))
        .collect();
    let mut changed: Vec<&str> = files
        .iter()
        .filter(|(path, file)| has_other_length(cluster, path, file))
        .map(|(path, _)| *path)
        .collect();
    // The bytes of an archive come in their own order, and once; for a few tables nobody waits for
    // all files.
    let is_summed = !cluster.source().spec().is_tar() && options.selection.is_everything();
    if is_summed {
        changed.extend(with_other_sum(cluster, &files, options, progress));
        changed.sort_unstable();
        changed.dedup();
    }
    let mut gaps = Vec::from_iter(changed_files(&changed));
    if !is_summed {
        gaps.push(NotChecked {
            inherent: true,
            ..not_salvaged(
                "checksums of files in backup_manifest",
                "files of an archive, or where a part is selected, are compared with it by their lengths alone; pgclinic check compares checksums",
            )
        });
    }
    gaps
}

fn changed_files(changed: &[&str]) -> Option<NotChecked> {
    let named = changed.get(..NAMED_MAX).unwrap_or(changed);
    let more = match changed.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = format!(
        "they are not as backup_manifest has them: another length, another checksum, or not there; rows of them may be missing, or of another moment: {}{more}",
        named.join(", ")
    );
    let files = plural(changed.len() as u64, "file");
    let what = format!("what stood in {files} of the backup");
    (!changed.is_empty()).then(|| not_salvaged(&what, &why))
}

/// What cannot be read is reported by whoever needs it.
fn has_other_length(cluster: &Cluster, path: &str, file: &ManifestFile) -> bool {
    match Presence::of_file(cluster.source().as_ref(), path) {
        Presence::Missing => true,
        Presence::Unreadable(_) => false,
        Presence::There(len) => len != file.size,
    }
}

fn with_other_sum<'f>(
    cluster: &Cluster,
    files: &[(&'f str, &ManifestFile)],
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Vec<&'f str> {
    let summed = files.iter();
    let summed: Vec<(&str, u64, Algorithm)> = summed
        .filter_map(|(path, file)| Some((*path, file.size, file.sum.as_ref()?.0)))
        .collect();
    let source = cluster.source().as_ref();
    let sums = file_sums(source, &summed, options.threads, &|_| {
        !progress.is_interrupted()
    });
    let is_other = |path: &str, file: &ManifestFile| {
        let known = file.sum.as_ref().zip(sums.get(path));
        known.is_some_and(|((_, was), is)| was != is)
    };
    let changed = files.iter().filter(|(path, file)| is_other(path, file));
    changed.map(|(path, _)| *path).collect()
}
