//! `PG_VERSION` of each database in both copies: without it nobody connects to the database.

use pgclinic_model::document::{Copy, DiffDocument, DiffFile, Difference, FileKind};
use pgclinic_source::{SourceErrorKind, read_all};

use crate::page_comparison::Side;
use crate::pairs::is_hidden;

/// More than any version has.
const VERSION_BYTES: u64 = 64;

/// The file in one copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Absent,
    Unreadable,
    Right,
    Wrong,
}

/// Compares the files of databases that both copies have. One that recovery or a server is about to
/// make may be missing.
pub(crate) fn compare(sides: (Side<'_>, Side<'_>), document: &mut DiffDocument) {
    let (a, b) = (sides.0.cluster, sides.1.cluster);
    if [a, b]
        .iter()
        .any(|own| own.needs_recovery() || own.is_running())
    {
        return;
    }
    let both = a.homes.iter().filter(|home| b.homes.contains(home));
    for home in both.filter(|home| home.database != 0 && !is_hidden(sides, &home.folder)) {
        let path = format!("{}/PG_VERSION", home.folder);
        let (difference, copy) = match (version(sides.0, &path), version(sides.1, &path)) {
            // In tablespaces that are not the database's default one there is none.
            (Version::Right, Version::Right) | (Version::Absent, Version::Absent) => continue,
            (Version::Unreadable, _) | (_, Version::Unreadable) => (Difference::Unreadable, None),
            (Version::Wrong, Version::Wrong) => (Difference::BothUnsound, None),
            (Version::Wrong, _) => (Difference::Unsound, Some(Copy::A)),
            (_, Version::Wrong) => (Difference::Unsound, Some(Copy::B)),
            (Version::Absent, _) => (Difference::Lost, Some(Copy::A)),
            (_, Version::Absent) => (Difference::Lost, Some(Copy::B)),
        };
        document.files.push(DiffFile {
            path,
            kind: FileKind::File,
            difference,
            copy,
            pages: Vec::new(),
            why: format!(
                "every database has its version, {}, in this file",
                a.layout.major
            ),
        });
    }
}

fn version(side: Side<'_>, path: &str) -> Version {
    match read_all(side.cluster.source().as_ref(), path, VERSION_BYTES) {
        Ok(bytes) if bytes == format!("{}\n", side.cluster.layout.major).into_bytes() => {
            Version::Right
        }
        Ok(_) => Version::Wrong,
        Err(error) if error.kind == SourceErrorKind::NotFound => Version::Absent,
        Err(_) => Version::Unreadable,
    }
}
