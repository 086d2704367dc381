//! Packed archives, looked at while they are unpacked: nothing is written but what names and WAL
//! need.

use std::path::Path;
use std::sync::Arc;

use pgclinic_check::CheckOptions;
use pgclinic_check::stream::{PageSums, Shape, StreamCheck, fetch_catalogs};
use pgclinic_cluster::{Build, MANIFEST, MANIFEST_BYTES};
use pgclinic_format::Layout;
use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_format::digest::Algorithm;
use pgclinic_model::{CheckDocument, Progress};
use pgclinic_source::tar::{PackedArchives, TarStream};
use pgclinic_source::{DataDirectory, SourceError, SourceErrorKind, StreamedBackup, read_all};

use super::suspects_max;
use crate::exit::Failure;

/// Checks a backup in packed archives in one pass. Nothing where that cannot be: an archive is
/// plain or broken, or the control file, which comes last, tells that pages had to be looked at in
/// another way.
pub(crate) fn check_archives(
    path: &Path,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Result<Option<CheckDocument>, Failure> {
    // What lies beside a bare name is looked for in its folder.
    let path = &path
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot open {}: {error}", path.display())))?;
    let Some(archives) = PackedArchives::of(path)? else {
        return Ok(None);
    };
    let Some(layout) = Layout::of_major(18) else {
        return Ok(None);
    };
    let shape = Shape {
        build: Build::USUAL,
        layout,
        sums: PageSums::Unknown,
        suspects_max: suspects_max(options, Build::USUAL.block_size),
    };
    // One that is no file, or longer than any, is told where files are read as files.
    let Ok(manifest) = manifest_beside(path) else {
        return Ok(None);
    };
    let known = manifest
        .as_ref()
        .and_then(|bytes| BackupManifest::parse(bytes).ok());
    let sum_of = |path: &str| match &known {
        Some(known) => Some(known.files.get(path)?.sum.as_ref()?.0),
        // One that comes with the files comes last, and nearly every one has these sums.
        None => Some(Algorithm::Crc32c),
    };
    let mut passed = StreamedBackup::new("a backup in archives", &options.spill_folder)?;
    let mut flight = StreamCheck::new(shape);
    let mut stream = TarStream::new(archives);
    let watched = flight.watch(&mut stream, &sum_of, &mut passed, progress);
    if watched.is_err() || !stream.troubles().is_empty() {
        return Ok(None);
    }
    // As where archives are read in place, the one beside them counts.
    if let Some(bytes) = &manifest {
        passed.add_kept(MANIFEST);
        passed.append(MANIFEST, bytes)?;
    }
    fetch_catalogs(&mut flight, &mut passed, None);
    let judged = flight.judge(Arc::new(passed), options, progress, std::convert::identity);
    let mut document = judged?;
    if let Some(document) = &mut document {
        document.target.kind = "tar-backup".into();
    }
    Ok(document)
}

/// The manifest that lies beside the archives, if there is one. An archive of another name stands
/// for itself.
fn manifest_beside(archive: &Path) -> Result<Option<Vec<u8>>, SourceError> {
    let Some(folder) = archive.parent().filter(|_| is_base(archive)) else {
        return Ok(None);
    };
    let folder = DataDirectory::open(folder)?;
    match read_all(&folder, MANIFEST, MANIFEST_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind == SourceErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `base.tar`, packed or not, as `pg_basebackup` names it.
fn is_base(archive: &Path) -> bool {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let packing = name.strip_prefix("base.tar");
    packing.is_some_and(|packing| matches!(packing, "" | ".gz" | ".lz4" | ".zst"))
}
