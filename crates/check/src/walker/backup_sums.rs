//! Checksums of files against the manifest of a base backup: those of relations come from the pass
//! over their pages, so that nothing is read twice; the other files are read here. Files that
//! passed by once were summed on their way.

use pgclinic_cluster::{Cluster, file_sum};
use pgclinic_format::backup_manifest::{BackupManifest, ManifestFile};
use pgclinic_format::digest::Algorithm;
use pgclinic_format::incremental::PREFIX;
use pgclinic_model::Progress;
use pgclinic_model::document::{NotChecked, Origin, Place, RelationSummary};
use pgclinic_model::plural;
use pgclinic_source::SourceError;

use crate::backup::file_changed::other_sum;
use crate::backup::files::{BackupPlaces, counts};
use crate::findings::{Draft, Findings};
use crate::stream::relation_file;
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, keep_drafts};

/// Tells which files have another checksum than the manifest says.
pub(crate) fn compare(
    cluster: &Cluster,
    options: &CheckOptions,
    progress: &dyn Progress,
    books: &mut RunLedger,
) {
    let Some(manifest) = cluster.manifest() else {
        return;
    };
    if !options.selection.is_everything() {
        return books.not_checked(only_a_part());
    }
    let places = BackupPlaces::new(cluster);
    let mut findings = changed((cluster, manifest), (cluster, &places), progress, books);
    keep_drafts(cluster, &mut findings, books);
}

/// Of a backup that is not looked at as a whole.
pub(crate) fn only_a_part() -> NotChecked {
    NotChecked {
        what: "files of the backup against its manifest".into(),
        why: "only a part of the backup was asked for".into(),
        inherent: true,
    }
}

/// The files of a backup with another checksum than its manifest says. What damaged pages explain
/// is told of `whole`, whose pages were looked at: the backup itself, or what it is a link of.
pub(crate) fn changed(
    (cluster, manifest): (&Cluster, &BackupManifest),
    (whole, places): (&Cluster, &BackupPlaces<'_>),
    progress: &dyn Progress,
    books: &mut RunLedger,
) -> Findings {
    let mut findings = Findings::default();
    let mut passed_by: Vec<(&str, Algorithm)> = Vec::new();
    for (path, file) in &manifest.files {
        if progress.is_interrupted() {
            break;
        }
        let Some((algorithm, was)) = wanted(cluster, path, file) else {
            continue;
        };
        let sum = match sum_now(cluster, path, algorithm, books) {
            Ok(sum) => sum,
            Err(Unsummed::PassedBy) => {
                passed_by.push((path, algorithm));
                continue;
            }
            Err(Unsummed::Unreadable(error)) => {
                books.not_checked(NotChecked {
                    what: format!("{path} against the manifest"),
                    why: error.to_string(),
                    inherent: false,
                });
                continue;
            }
        };
        if sum != was {
            let place = places.of(path);
            let damaged = first_damage(&place, whole, &books.relations);
            let draft = explained(other_sum(algorithm, &sum, was), damaged);
            findings.add(draft.place(place));
        }
    }
    tell_passed_by(&passed_by, books);
    findings
}

/// Why a file has no checksum.
enum Unsummed {
    /// It passed by once, and was not summed in this way then.
    PassedBy,
    Unreadable(SourceError),
}

/// The checksum of a file: from the pass over its pages, from when it passed by, or made here. What
/// only the last two see is booked; relations were booked with their pages.
fn sum_now(
    cluster: &Cluster,
    path: &str,
    algorithm: Algorithm,
    books: &mut RunLedger,
) -> Result<Vec<u8>, Unsummed> {
    if let Some(sum) = books.sums.remove(path) {
        return Ok(sum);
    }
    let Some(known) = cluster.streamed_checksums() else {
        let sum =
            file_sum(cluster.source().as_ref(), path, algorithm).map_err(Unsummed::Unreadable)?;
        books.file(cluster, path);
        return Ok(sum);
    };
    let known = known.get(path).filter(|(own, _)| *own == algorithm);
    let (_, sum) = known.ok_or(Unsummed::PassedBy)?;
    if relation_file(path).is_none() {
        books.file(cluster, path);
    }
    Ok(sum.clone())
}

/// Files that nobody can sum any more, in one line.
fn tell_passed_by(files: &[(&str, Algorithm)], books: &mut RunLedger) {
    let Some((first, algorithm)) = files.first() else {
        return;
    };
    books.not_checked(NotChecked {
        what: format!(
            "{} against the manifest, the first of them {first}",
            plural(files.len(), "file")
        ),
        why: format!(
            "they passed by once, and no {algorithm} was made of them, as the manifest came later; level structure reads them again"
        ),
        inherent: false,
    });
}

/// The checksum of a file that is there, counts and has its length; the others are told already.
pub(crate) fn wanted<'a>(
    cluster: &Cluster,
    path: &str,
    file: &'a ManifestFile,
) -> Option<(Algorithm, &'a [u8])> {
    let (algorithm, sum) = file.sum.as_ref()?;
    let as_long = cluster.source().len(path).ok()? == file.size;
    (as_long && counts(path)).then_some((*algorithm, sum.as_slice()))
}

/// The first damaged page of the segment.
fn first_damage(place: &Place, cluster: &Cluster, damaged: &[RelationSummary]) -> Option<Origin> {
    let (database, filenode, fork) = (place.database_oid?, place.filenode?, place.fork?);
    let name = place.path.rsplit_once('/')?.1;
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let segment = pgclinic_cluster::RelationFileName::parse(name)?;
    let whole = cluster.build.segment_blocks();
    let begin = u64::from(segment.segment).checked_mul(whole)?;
    let own = |one: &&RelationSummary| {
        (one.database_oid, one.filenode, one.fork) == (Some(database), Some(filenode), fork)
    };
    let ranges = damaged.iter().filter(own).flat_map(|one| &one.damaged);
    let mut inside = ranges.filter(|[start, end]| *start < begin + whole && *end > begin);
    let block = inside.next()?[0].max(begin);
    Some(Origin {
        database,
        filenode,
        fork,
        block: u32::try_from(block).ok(),
    })
}

/// A page of the file is damaged: that is the story, and the file's checksum part of it.
fn explained(mut draft: Draft, damaged: Option<Origin>) -> Draft {
    draft.links.compared = damaged.is_some();
    draft.links.follows.extend(damaged);
    draft
}
