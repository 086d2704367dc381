//! Files of a base backup that are not as its manifest has them: rows may be missing that no index
//! and no page tells of.

use std::sync::atomic::{AtomicUsize, Ordering};

use pgclinic_cluster::{Cluster, file_sum};
use pgclinic_format::backup_manifest::ManifestFile;
use pgclinic_model::document::NotChecked;
use pgclinic_model::plural;
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
pub(super) fn gaps(cluster: &Cluster, options: &SalvageOptions) -> Vec<NotChecked> {
    let is_one_backup = cluster.links().is_empty() && !cluster.is_partial();
    let Some(manifest) = cluster.manifest().filter(|_| is_one_backup) else {
        return Vec::new();
    };
    let of_rows = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let files = manifest.files.iter();
    let files: Vec<(&str, &ManifestFile)> = files
        .map(|(path, file)| (path.as_str(), file))
        .filter(|(path, _)| of_rows(path))
        .collect();
    // The bytes of an archive come in their own order, and once; for a few tables nobody waits for
    // all files.
    let is_tar = cluster.source().spec().is_tar();
    let is_summed = !is_tar && options.selection.is_everything();
    let mut changed = changed(cluster, &files, is_summed, options);
    changed.sort_unstable();
    let mut gaps = Vec::new();
    if !changed.is_empty() {
        let named: Vec<&str> = changed.iter().copied().take(NAMED_MAX).collect();
        let more = match changed.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = format!(
            "they are not as backup_manifest has them: another length, another checksum, or not there; rows of them may be missing, or of another moment: {}{more}",
            named.join(", ")
        );
        let files = plural(changed.len() as u64, "file");
        let what = format!("what stood in {files} of the backup");
        gaps.push(not_salvaged(&what, &why));
    }
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

/// Those whose length or checksum is another one.
fn changed<'f>(
    cluster: &Cluster,
    files: &[(&'f str, &ManifestFile)],
    is_summed: bool,
    options: &SalvageOptions,
) -> Vec<&'f str> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let Some((path, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if is_changed(cluster, path, file, is_summed) {
                own.push(*path);
            }
        }
        own
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..options.threads.get())
            .map(|_| scope.spawn(work))
            .collect();
        let mut changed = work();
        for other in others {
            changed.extend(
                other
                    .join()
                    .expect("a thread that sums files does not panic"),
            );
        }
        changed
    })
}

/// What cannot be read is told by whoever needs it.
fn is_changed(cluster: &Cluster, path: &str, file: &ManifestFile, is_summed: bool) -> bool {
    match Presence::of_file(cluster.source().as_ref(), path) {
        Presence::Missing => true,
        Presence::Unreadable(_) => false,
        Presence::There(len) if len != file.size => true,
        Presence::There(_) => {
            file.sum
                .as_ref()
                .filter(|_| is_summed)
                .is_some_and(|(algorithm, sum)| {
                    let found = file_sum(cluster.source().as_ref(), path, *algorithm);
                    found.is_ok_and(|found| found != *sum)
                })
        }
    }
}
