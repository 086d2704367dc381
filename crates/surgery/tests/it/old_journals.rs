//! Journals of earlier versions, one of each schema and writer: an undo may be needed long after
//! the program was replaced.

use std::path::Path;

use pgclinic_model::plan::Change;
use pgclinic_surgery::journal::State;
use pgclinic_surgery::{Disk, JournalFolder};

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
