//! What every source promises, as a function that panics where one does not: for the tests of each
//! source.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Entry, EntryKind, Range, Result, Source, SourceErrorKind, read_all, read_exact_at};

/// The files a source must show: path and content.
pub type Expected = BTreeMap<String, Vec<u8>>;

/// A tree that has what the checks need: nested folders, an empty file, several buffers' worth of
/// bytes.
pub fn sample_tree() -> Expected {
    let mut files = sample_files();
    files.insert("PG_VERSION".to_owned(), b"18\n".to_vec());
    files.insert("base/5/16384".to_owned(), pattern(70_000));
    files.insert("base/5/16384.1".to_owned(), pattern(8192));
    files.insert("base/1/empty".to_owned(), Vec::new());
    files.insert("global/pg_control".to_owned(), pattern(8192));
    files
}

/// Files of the root folder only, all of one relation, for sources that show no folders.
pub fn sample_files() -> Expected {
    let sizes = [
        ("16384", 100_001),
        ("16384.1", 8192),
        ("16384_fsm", 0),
        ("16384_vm", 1),
    ];
    sizes
        .map(|(name, size)| (name.to_owned(), pattern(size)))
        .into()
}

fn pattern(size: u32) -> Vec<u8> {
    // Differs from its neighbour and from itself a page later.
    (0..size)
        .map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect()
}

/// Panics unless the source shows these files, no others, and answers every question about them as
/// promised.
pub fn check(source: &dyn Source, expected: &Expected) {
    check_listings(source, expected);
    for (path, content) in expected {
        check_file(source, path, content);
    }
    check_absent(source);
    check_refused(source);
    check_threads(source, expected);
}

/// Panics when a file that shrinks between two calls gives anything but a short count or an error.
/// `shrink` must cut the file to less than half.
pub fn check_shrinking(source: &dyn Source, path: &str, shrink: &dyn Fn()) {
    let before = answer(path, source.len(path));
    let mut buf = vec![0; size(before)];
    assert_eq!(
        answer(path, source.read_at(path, 0, &mut buf)),
        buf.len(),
        "{path}: whole before it shrinks"
    );
    shrink();
    let count = answer(path, source.read_at(path, 0, &mut buf));
    assert!(
        count < buf.len().div_ceil(2),
        "{path}: {count} bytes although it shrank from {before}"
    );
    assert_eq!(
        answer(path, source.read_at(path, before / 2, &mut buf)),
        0,
        "{path}: nothing beyond the new end"
    );
    let exact = read_exact_at(source, path, 0, &mut buf).map_err(|error| error.kind);
    assert_eq!(
        exact,
        Err(SourceErrorKind::Shrunk),
        "{path}: the missing bytes are an error for who needs them"
    );
    assert_eq!(
        answer(path, source.len(path)),
        u64::try_from(count).unwrap_or(0),
        "{path}: the new length"
    );
}

fn check_listings(source: &dyn Source, expected: &Expected) {
    for folder in folders(expected) {
        let listed = answer(&folder, source.list(&folder));
        assert_eq!(listed, entries(&folder, expected), "listing of {folder:?}");
        assert_eq!(
            kind(source.len(&folder)),
            SourceErrorKind::NotRegular,
            "length of directory {folder:?}"
        );
        assert_eq!(
            kind(source.read_at(&folder, 0, &mut [0])),
            SourceErrorKind::NotRegular,
            "reading directory {folder:?}"
        );
    }
}

fn folders(expected: &Expected) -> BTreeSet<String> {
    let parents = expected.keys().flat_map(|path| {
        path.match_indices('/')
            .map(|(at, _)| path.split_at(at).0.to_owned())
    });
    parents.chain([String::new()]).collect()
}

fn entries(folder: &str, expected: &Expected) -> Vec<Entry> {
    let mut entries = BTreeMap::new();
    for (path, content) in expected {
        let Some(rest) = crate::path::below(path, folder) else {
            continue;
        };
        let (name, kind, len) = match rest.split_once('/') {
            Some((name, _)) => (name, EntryKind::Folder, 0),
            None => (rest, EntryKind::File, content.len()),
        };
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        entries.insert(
            name,
            Entry {
                name: name.to_owned(),
                kind,
                len,
            },
        );
    }
    entries.into_values().collect()
}

fn check_file(source: &dyn Source, path: &str, content: &[u8]) {
    let len = u64::try_from(content.len()).unwrap_or(u64::MAX);
    assert_eq!(answer(path, source.len(path)), len, "length of {path}");
    assert_eq!(
        kind(source.list(path)),
        SourceErrorKind::NotRegular,
        "listing of file {path}"
    );
    assert_eq!(
        answer(path, read_all(source, path, len)),
        content,
        "whole {path}"
    );
    if let Some(limit) = len.checked_sub(1) {
        assert_eq!(
            kind(read_all(source, path, limit)),
            SourceErrorKind::Refused,
            "{path} above the limit"
        );
    }
    source.prefetch(&[Range {
        path: path.to_owned(),
        offset: 0,
        len,
    }]);
    let starts = [
        0,
        1,
        len / 2,
        len.saturating_sub(1),
        len,
        len.saturating_add(1),
        1 << 62,
        u64::MAX - 1,
        u64::MAX,
    ];
    for offset in starts {
        for wanted in [0, 1, 100, 8192, content.len().saturating_add(10)] {
            check_read(source, path, content, offset, wanted);
        }
    }
}

fn check_read(source: &dyn Source, path: &str, content: &[u8], offset: u64, wanted: usize) {
    let rest = content.get(size(offset)..).unwrap_or_default();
    let due = rest.get(..wanted).unwrap_or(rest);
    let mut buf = vec![0xEE; wanted];
    let count = answer(path, source.read_at(path, offset, &mut buf));
    assert_eq!(
        count,
        due.len(),
        "count of {wanted} bytes of {path} at {offset}"
    );
    assert_eq!(
        buf.get(..count),
        Some(due),
        "{wanted} bytes of {path} at {offset}"
    );
}

fn check_absent(source: &dyn Source) {
    for path in ["no-such-file", "no/such/file"] {
        let absent = SourceErrorKind::NotFound;
        assert_eq!(kind(source.len(path)), absent, "length of {path}");
        let read = source.read_at(path, 0, &mut [0]);
        assert_eq!(kind(read), absent, "reading {path}");
        assert_eq!(kind(source.list(path)), absent, "listing of {path}");
    }
    check_below_a_file(source);
    source.prefetch(&[Range {
        path: "no-such-file".to_owned(),
        offset: u64::MAX,
        len: u64::MAX,
    }]);
}

/// Where a file stands in the place of a directory, nothing is there; a disk says that more exactly
/// than an archive.
fn check_below_a_file(source: &dyn Source) {
    let path = "16384/below-a-file";
    let answers = [
        kind(source.len(path)),
        kind(source.read_at(path, 0, &mut [0])),
        kind(source.list(path)),
    ];
    for answer in answers {
        assert!(
            matches!(
                answer,
                SourceErrorKind::NotFound | SourceErrorKind::NotRegular
            ),
            "{path}: {answer:?}"
        );
    }
}

fn check_refused(source: &dyn Source) {
    for path in [
        "..",
        "../x",
        "base/../../x",
        "/etc/passwd",
        "base//5",
        "./16384",
        "16384/",
        "a\0b",
    ] {
        assert_eq!(
            kind(source.len(path)),
            SourceErrorKind::Refused,
            "length of {path:?}"
        );
        assert_eq!(
            kind(source.read_at(path, 0, &mut [0])),
            SourceErrorKind::Refused,
            "reading {path:?}"
        );
        assert_eq!(
            kind(source.list(path)),
            SourceErrorKind::Refused,
            "listing of {path:?}"
        );
    }
}

fn check_threads(source: &dyn Source, expected: &Expected) {
    std::thread::scope(|scope| {
        for step in [777, 4096, 8192, 65536] {
            scope.spawn(move || {
                for (path, content) in expected {
                    for offset in (0..u64::try_from(content.len()).unwrap_or(0)).step_by(step) {
                        check_read(source, path, content, offset, step);
                    }
                }
            });
        }
    });
}

fn answer<T>(path: &str, result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{path:?} should be readable: {error}"),
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> SourceErrorKind {
    match result {
        Ok(value) => panic!("an error was expected, not {value:?}"),
        Err(error) => error.kind,
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
