//! Files that were exchanged are told from those that were written into.

use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_source::{FileMark, SourceSpec, marks_of};

const STEADY: [&str; 2] = ["global/pg_control", "PG_VERSION"];

fn folder() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let pgdata = home.path().join("data");
    fs::create_dir_all(pgdata.join("global")).expect("a directory");
    for name in STEADY {
        fs::write(pgdata.join(name), name).expect("a file");
    }
    (home, pgdata)
}

fn marks(path: &Path) -> Vec<FileMark> {
    marks_of(&SourceSpec::DataDirectory {
        path: path.to_owned(),
    })
}

fn may_be(one: &[FileMark], other: &[FileMark]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.may_be(other))
}

#[test]
fn a_file_that_is_written_into_stays_the_same_and_one_that_is_put_there_is_another() {
    let (home, pgdata) = folder();
    let before = marks(&pgdata);
    assert_eq!(before.len(), STEADY.len());
    let control = pgdata.join("global/pg_control");
    fs::write(&control, "written into").expect("a file");
    assert!(may_be(&before, &marks(&pgdata)));

    // The first file keeps its inode for as long as it has a name.
    fs::rename(&control, home.path().join("first")).expect("moved");
    fs::write(&control, "written into").expect("a file");
    assert!(!may_be(&before, &marks(&pgdata)));
    fs::rename(home.path().join("first"), &control).expect("moved");
    assert!(may_be(&before, &marks(&pgdata)));
}

#[test]
fn an_inode_that_is_given_again_is_known_by_its_time() {
    let (_home, pgdata) = folder();
    let mut first = marks(&pgdata).remove(0);
    let mut again = first.clone();
    (first.born, again.born) = (Some(1), Some(2));
    assert!(!first.may_be(&again));
    again.born = None;
    assert!(first.may_be(&again), "nothing tells");
}

#[test]
fn an_archive_that_was_written_to_is_another() {
    let home = tempfile::tempdir().expect("a directory");
    let archive = home.path().join("monday.tar");
    fs::write(&archive, "a").expect("a file");
    let spec = SourceSpec::TarBackup {
        path: archive.clone(),
        spill_folder: home.path().to_owned(),
    };
    let before = marks_of(&spec);
    assert_eq!(before.len(), 1);
    fs::write(&archive, "ab").expect("a file");
    assert!(!may_be(&before, &marks_of(&spec)));
}
