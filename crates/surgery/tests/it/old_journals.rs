//! Journals of earlier versions, one of each schema and writer, and one with each kind of change:
//! an undo may be needed long after the program was replaced.

use std::collections::BTreeSet;
use std::path::Path;

use pgclinic_model::plan::Change;
use pgclinic_surgery::journal::{Journal, State};
use pgclinic_surgery::{Disk, JournalFolder};

fn corpus() -> Vec<(String, Journal)> {
    let folders = std::fs::read_dir("tests/it/journals").expect("a directory");
    let mut folders: Vec<_> = folders
        .map(|folder| folder.expect("an entry").path())
        .collect();
    folders.sort();
    let read = |path: &Path| JournalFolder::new(path).read(&Disk).expect("a journal");
    let journals = folders.iter();
    journals
        .map(|path| (path.display().to_string(), read(path)))
        .collect()
}

#[test]
fn a_journal_of_a_heal_is_read() {
    let folder = JournalFolder::new(Path::new("tests/it/journals/heal-1"));
    let journal = folder.read(&Disk).expect("a journal");
    assert_eq!(journal.schema, "pgclinic.journal/1");
    assert_eq!(journal.state, State::Undone);
    assert!(journal.identifier().is_some());
    let paths: Vec<&str> = journal.patch.changes.iter().map(Change::path).collect();
    assert_eq!(paths, ["base/5/16384_vm", "base/5/16384"]);
}

/// Nothing of a journal is lost on the way through this version.
#[test]
fn every_journal_is_written_again_as_it_was() {
    for (path, journal) in corpus() {
        let text = std::fs::read(Path::new(&path).join("journal.json")).expect("a file");
        let before: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let after = serde_json::to_value(&journal).expect("JSON");
        assert_eq!(after, before, "{path}");
    }
}

/// The kinds of changes, as journals name them. Whoever adds one adds it to `journals/kinds-1`, and
/// never changes what stands there.
fn kind(change: &Change) -> &'static str {
    match change {
        Change::Bytes { .. } => "bytes",
        Change::Cut { .. } => "cut",
        Change::Extend { before: None, .. } => "extend, made",
        Change::Extend { .. } => "extend",
        Change::Append { before: None, .. } => "append, made",
        Change::Append { .. } => "append",
        Change::Remove { .. } => "remove",
        Change::Write { kept: None, .. } => "write",
        Change::Write { .. } => "write, anew",
        Change::Directory { .. } => "directory",
        Change::RemoveDirectory { .. } => "remove-directory",
        Change::Mode { .. } => "mode",
        Change::Link { .. } => "link",
    }
}

#[test]
fn the_corpus_has_every_kind_of_change() {
    let journals = corpus();
    let changes = journals.iter().flat_map(|(_, own)| &own.patch.changes);
    let found: BTreeSet<&str> = changes.map(kind).collect();
    let all = [
        "append",
        "append, made",
        "bytes",
        "cut",
        "directory",
        "extend",
        "extend, made",
        "link",
        "mode",
        "remove",
        "remove-directory",
        "write",
        "write, anew",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), all);
}
