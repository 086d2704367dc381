//! The links of a chain of backups against their manifests. The pass reads pages where the chain
//! has them newest; the files of the links, parts and blocks that were replaced later included, are
//! read here for their checksums.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, Link, file_sums};
use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::digest::Algorithm;
use pgclinic_model::Progress;
use pgclinic_model::document::NotChecked;

use crate::backup::file_changed::BackupFileChanged;
use crate::backup::file_extra::BackupFileExtra;
use crate::backup::file_missing::BackupFileMissing;
use crate::backup::files::BackupPlaces;
use crate::backup::manifest::BackupManifestCheck;
use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};
use crate::walker::backup_sums::{changed, only_a_part, wanted};
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, system_identifier};

/// What is asked of every backup with a manifest.
const CHECKS: [&dyn ClusterCheck; 4] = [
    &BackupManifestCheck,
    &BackupFileMissing,
    &BackupFileChanged,
    &BackupFileExtra,
];

/// Tells what is wrong with the files of each link.
pub(crate) fn compare(
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
    books: &mut RunLedger,
) {
    if !cluster.links().is_empty() && !options.selection.is_everything() {
        return books.not_checked(only_a_part());
    }
    let places = BackupPlaces::new(cluster);
    for link in cluster.links() {
        if progress.is_interrupted() {
            return;
        }
        let mut findings = told_by_names(link, &places);
        match link.cluster.manifest() {
            Some(manifest) => {
                let mut sums = told_by_sums((link, manifest), (cluster, &places), options, progress, books);
                findings.drafts.append(&mut sums.drafts);
            }
            None => books.not_checked(NotChecked {
                what: format!("files of {}", link.name),
                why: "there is no manifest that could be read; pages are checked by their own checksums".into(),
                inherent: true,
            }),
        }
        keep(cluster, link, findings, books);
    }
}

/// The manifest itself, and files by their names and lengths.
fn told_by_names(link: &Link, places: &BackupPlaces<'_>) -> Findings {
    let mut findings = Findings::default();
    for check in CHECKS {
        check.check(&link.cluster, &mut findings);
    }
    // A link by itself does not know its catalogs: they are there in parts.
    for place in findings
        .drafts
        .iter_mut()
        .filter_map(|draft| draft.place.as_mut())
    {
        *place = places.of(&place.path);
    }
    findings
}

/// Files by their checksums.
fn told_by_sums(
    (link, manifest): (&Link, &BackupManifest),
    (whole, places): (&Cluster, &BackupPlaces<'_>),
    options: &CheckOptions,
    progress: &dyn Progress,
    books: &mut RunLedger,
) -> Findings {
    let own = &link.cluster;
    // The same paths are booked anew for each link, as other bytes lie there.
    let booked = std::mem::take(&mut books.booked);
    let sums = sums(own, manifest, options, progress);
    for path in sums.keys() {
        books.file(own, path);
    }
    books.sums = sums;
    let findings = changed((own, manifest), (whole, places), progress, books);
    books.sums.clear();
    books.booked = booked;
    findings
}

/// Checksums of the files that could be read, made by all threads.
fn sums(
    cluster: &Cluster,
    manifest: &BackupManifest,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> BTreeMap<String, Vec<u8>> {
    let files = manifest.files.iter();
    let files: Vec<(&str, u64, Algorithm)> = files
        .filter_map(|(path, file)| Some((path.as_str(), file.size, wanted(cluster, path, file)?.0)))
        .collect();
    progress.expect(files.iter().map(|(_, bytes, _)| bytes).sum());
    // Who cannot be read is asked again where that is told.
    file_sums(
        cluster.source().as_ref(),
        &files,
        options.threads,
        &|bytes| {
            progress.advance(bytes);
            !progress.is_interrupted()
        },
    )
}

/// Keeps drafts with the name of their link.
fn keep(cluster: &Cluster, link: &Link, mut findings: Findings, books: &mut RunLedger) {
    for mut gap in std::mem::take(&mut findings.not_checked) {
        gap.what = format!("{}: {}", link.name, gap.what);
        books.not_checked(gap);
    }
    let nowhere = pgclinic_cluster::file_place("", pgclinic_model::document::FileKind::File);
    // The same file of another link is another story.
    let identifier = system_identifier(cluster).wrapping_add(link.started_at().0);
    for mut draft in findings.take_drafts() {
        crate::consequences::complete_file(&mut draft);
        let draft = named(draft, link);
        books.findings.keep(draft.finish(&nowhere, identifier));
    }
}

fn named(mut draft: Draft, link: &Link) -> Draft {
    draft.message = format!("in {}: {}", link.name, draft.message);
    draft.fact("backup", link.name.as_str())
}
