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
/// Bytes of a catalog that are fetched.
const CATALOG_BYTES: u64 = 1 << 30;

/// Fetches from `files`, if there is somebody to ask.
pub fn fetch_catalogs(
    flight: &mut StreamCheck,
    passed: &mut StreamedBackup,
    files: Option<&dyn Source>,
) {
    for path in missing(passed) {
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

/// Files of catalogs that are not kept.
fn missing(passed: &StreamedBackup) -> Vec<String> {
    let base = passed.list("base").unwrap_or_default().into_iter();
    let databases = base.filter(|entry| entry.kind == EntryKind::Folder);
    let folders = databases.map(|entry| format!("base/{}", entry.name));
    let mut missing = Vec::new();
    for folder in folders.chain(["global".to_owned()]) {
        let map = read_all(passed, &format!("{folder}/pg_filenode.map"), 4096);
        let map = map.ok().and_then(|bytes| RelationMap::parse(&bytes).ok());
        let Some(map) = map.filter(RelationMap::is_right) else {
            continue;
        };
        for filenode in NEEDED.into_iter().filter_map(|oid| map.filenode(oid)) {
            let path = format!("{folder}/{filenode}");
            if passed.len(&path).is_ok() && !passed.is_kept(&path) {
                missing.push(path);
            }
        }
    }
    missing
}
