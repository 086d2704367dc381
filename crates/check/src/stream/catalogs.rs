//! Catalogs that were rewritten have numbers like tables, and large ones passed by: they are
//! fetched, where somebody can be asked, or told.

use pgclinic_format::{Oid, RelationMap, oid};
use pgclinic_model::document::NotChecked;
use pgclinic_source::{EntryKind, Source, SourceError, SourceErrorKind, StreamedBackup, read_all};

use crate::stream::StreamCheck;

/// Catalogs that are found by the map and without which nothing has a name.
const NEEDED: [Oid; 4] = [
    oid::PG_CLASS,
    oid::PG_ATTRIBUTE,
    oid::PG_TYPE,
    oid::PG_DATABASE,
];
/// Bytes of a map that are read.
const MAP_BYTES: u64 = 4096;
/// Bytes of a catalog that are fetched.
const CATALOG_BYTES: u64 = 1 << 30;

/// Times that a catalog is looked for which a server goes on rewriting.
const REWRITES_MAX: usize = 5;

/// Fetches from `files`, if there is somebody to ask.
pub fn fetch_catalogs(
    flight: &mut StreamCheck,
    passed: &mut StreamedBackup,
    files: Option<&dyn Source>,
) {
    let databases = flight.databases.as_ref();
    let is_passing = |database: Oid| databases.is_some_and(|asked| asked.made_or_dropped(database));
    let folders = folders(passed, is_passing);
    if let Some(files) = files {
        for folder in &folders {
            fetch_rewritten(flight, passed, files, folder);
        }
    }
    for path in missing(passed, &folders) {
        let fetched = match files {
            Some(files) => read_all(files, &path, CATALOG_BYTES),
            None => Err(SourceError::new(
                path.as_str(),
                SourceErrorKind::Refused,
                "it passed by before anybody knew that it is a catalog",
            )),
        };
        let kept = fetched.and_then(|bytes| {
            let bytes = as_it_passed(passed, &path, bytes)?;
            passed.add_kept(&path);
            passed.append(&path, &bytes)
        });
        if let Err(error) = kept {
            flight.not_checked.push(NotChecked {
                what: format!("names of relations that {path} holds"),
                why: error.to_string(),
                inherent: false,
            });
        }
    }
}

/// As many bytes as passed: the catalog may have grown since, or have been written anew elsewhere.
fn as_it_passed(
    passed: &StreamedBackup,
    path: &str,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, SourceError> {
    let len = passed.len(path)?;
    if (bytes.len() as u64) < len {
        let why = "the server has rewritten the catalog since it passed by";
        return Err(SourceError::new(path, SourceErrorKind::Refused, why));
    }
    bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(bytes)
}

/// `VACUUM FULL` gives a catalog another file while the map and the files pass: those of the next
/// moment are as good. One that cannot be fetched is missed where its names are read.
fn fetch_rewritten(
    flight: &mut StreamCheck,
    passed: &mut StreamedBackup,
    files: &dyn Source,
    folder: &str,
) {
    let has_come = |passed: &StreamedBackup| {
        let map = map_of(passed, folder);
        map.is_none_or(|map| needed(&map, folder).all(|path| passed.len(&path).is_ok()))
    };
    for _ in 0..REWRITES_MAX {
        if has_come(passed) || fetch_map_and_catalogs(flight, passed, files, folder).is_none() {
            return;
        }
    }
}

fn fetch_map_and_catalogs(
    flight: &mut StreamCheck,
    passed: &mut StreamedBackup,
    files: &dyn Source,
    folder: &str,
) -> Option<()> {
    let path = map_path(folder);
    let bytes = read_all(files, &path, MAP_BYTES).ok()?;
    let map = RelationMap::parse(&bytes)
        .ok()
        .filter(RelationMap::is_right)?;
    let absent = needed(&map, folder).filter(|path| passed.len(path).is_err());
    let absent: Vec<String> = absent.collect();
    passed.add_kept(&path);
    passed.append(&path, &bytes).ok()?;
    for path in absent {
        // Rewritten once more: the map is read again.
        let Ok(bytes) = read_all(files, &path, CATALOG_BYTES) else {
            return Some(());
        };
        passed.add_kept(&path);
        passed.append(&path, &bytes).ok()?;
        flight.fetched.insert(path);
    }
    Some(())
}

/// Directories with catalogs, but for those of databases that come and go.
fn folders(passed: &StreamedBackup, is_passing: impl Fn(Oid) -> bool) -> Vec<String> {
    let base = passed.list("base").unwrap_or_default().into_iter();
    let is_skipped = |name: &str| name.parse().is_ok_and(&is_passing);
    let databases =
        base.filter(|entry| entry.kind == EntryKind::Folder && !is_skipped(&entry.name));
    let folders = databases.map(|entry| format!("base/{}", entry.name));
    folders.chain(["global".to_owned()]).collect()
}

fn map_path(folder: &str) -> String {
    format!("{folder}/pg_filenode.map")
}

fn map_of(passed: &StreamedBackup, folder: &str) -> Option<RelationMap> {
    let bytes = read_all(passed, &map_path(folder), MAP_BYTES).ok()?;
    RelationMap::parse(&bytes)
        .ok()
        .filter(RelationMap::is_right)
}

/// Paths of the catalogs that a map has.
fn needed(map: &RelationMap, folder: &str) -> impl Iterator<Item = String> {
    let files = NEEDED.into_iter().filter_map(|oid| map.filenode(oid));
    files.map(move |filenode| format!("{folder}/{filenode}"))
}

/// Files of catalogs that are not kept.
fn missing(passed: &StreamedBackup, folders: &[String]) -> Vec<String> {
    let catalogs = folders.iter().filter_map(|folder| {
        let map = map_of(passed, folder)?;
        let files: Vec<String> = needed(&map, folder).collect();
        Some(files)
    });
    let passed_by = |path: &String| passed.len(path).is_ok() && !passed.is_kept(path);
    catalogs.flatten().filter(passed_by).collect()
}
