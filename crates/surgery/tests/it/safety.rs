//! What is refused, and in which words.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use pgclinic_model::plan::{Change, Patch};
use pgclinic_servers::Checksums;
use pgclinic_surgery::{
    Consent, Error, MARKER_FILE, Operation, apply, copy_to, mark_copy, safety, undo,
};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

fn copy() -> TempCopy {
    copy_of(&seed(&server(18), Checksums::On))
}

fn patch(pgdata: &Path, path: &str) -> Patch {
    let before = std::fs::read(pgdata.join(path)).expect("a file")[..2].to_vec();
    let after = before.iter().map(|byte| !byte).collect();
    let change = Change::Bytes {
        path: path.into(),
        offset: 0,
        before,
        after,
    };
    Patch {
        changes: vec![change],
    }
}

fn write(pgdata: &Path, patch: &Patch, journal: &Path, consent: Consent) -> Result<(), Error> {
    let operation = Operation {
        pgdata,
        patch,
        journal,
        consent,
        what: "test",
        time: Some("2024-02-29 03:14:15 UTC"),
        beside: &[],
        control_file: None,
    };
    apply(&operation).map(drop)
}

#[test]
fn only_marked_copies_and_typed_numbers_are_written_to() {
    let copy = copy();
    let pgdata = &copy.pgdata;
    let journals = tempfile::tempdir().expect("a directory");
    let patch = patch(pgdata, "PG_VERSION");
    let number = safety::system_identifier(pgdata).expect("a control file");
    let refused =
        write(pgdata, &patch, &journals.path().join("a"), Consent::Marked).expect_err("no marker");
    assert!(
        refused
            .to_string()
            .contains("is not a marked copy: work on a copy (--copy-to DIR)"),
        "{refused}"
    );
    assert!(
        refused.to_string().contains(&number.to_string()),
        "{refused}"
    );
    let refused = write(
        pgdata,
        &patch,
        &journals.path().join("a"),
        Consent::Typed(12),
    )
    .expect_err("a wrong number");
    assert!(
        refused
            .to_string()
            .starts_with("the system identifier 12 was typed, but"),
        "{refused}"
    );
    write(
        pgdata,
        &patch,
        &journals.path().join("a"),
        Consent::Typed(number),
    )
    .expect("the right number");
    undo(&journals.path().join("a"), None).expect("an undo");
    mark_copy(pgdata).expect("a marker");
    write(pgdata, &patch, &journals.path().join("b"), Consent::Marked).expect("a marked copy");
    let again =
        write(pgdata, &patch, &journals.path().join("b"), Consent::Marked).expect_err("changed");
    assert!(
        again
            .to_string()
            .contains("has changed since the plan was made"),
        "{again}"
    );
    let inside =
        write(pgdata, &patch, &pgdata.join("journal"), Consent::Marked).expect_err("inside");
    assert!(
        inside.to_string().contains("name a directory outside"),
        "{inside}"
    );
}

#[test]
fn a_server_that_runs_or_may_run_is_left_alone() {
    let copy = copy();
    let pgdata = &copy.pgdata;
    let journals = tempfile::tempdir().expect("a directory");
    let patch = patch(pgdata, "global/pg_control");
    let number = safety::system_identifier(pgdata).expect("a control file");
    let lock = pgdata.join("postmaster.pid");
    let journal = journals.path().join("a");
    std::fs::write(&lock, format!("{}\n/data\n", std::process::id())).expect("a file");
    let refused = write(pgdata, &patch, &journal, Consent::Typed(number)).expect_err("running");
    assert!(matches!(refused, Error::Running { .. }), "{refused}");
    // A process that has ended for certain.
    let mut ended = Command::new("true").spawn().expect("a process");
    let pid = ended.id();
    ended.wait().expect("it ends");
    std::fs::write(&lock, format!("{pid}\n/data\n")).expect("a file");
    let refused =
        write(pgdata, &patch, &journal, Consent::Typed(number)).expect_err("perhaps running");
    assert!(
        refused
            .to_string()
            .contains("in a container or on another machine"),
        "{refused}"
    );
    assert!(!journal.exists());
    mark_copy(pgdata).expect("a marker");
    write(pgdata, &patch, &journal, Consent::Marked).expect("a crash leaves that behind in a copy");
}

#[test]
fn links_out_of_the_cluster_are_not_followed() {
    let copy = copy();
    let pgdata = &copy.pgdata;
    mark_copy(pgdata).expect("a marker");
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("1"), [7; 16]).expect("a file");
    symlink(outside.path(), pgdata.join("base/7777777")).expect("a link");
    symlink(outside.path().join("1"), pgdata.join("base/7777778")).expect("a link");
    for path in ["base/7777777/1", "base/7777778"] {
        let patch = patch(pgdata, path);
        let refused = write(
            pgdata,
            &patch,
            &outside.path().join("journal"),
            Consent::Marked,
        )
        .expect_err("a link");
        assert!(matches!(refused, Error::Path { .. }), "{refused}");
    }
    assert_eq!(
        std::fs::read(outside.path().join("1")).expect("a file"),
        [7; 16]
    );
}

#[test]
fn a_journal_of_another_cluster_is_refused() {
    let (one, other) = (copy(), copy_of(&seed(&server(13), Checksums::On)));
    mark_copy(&one.pgdata).expect("a marker");
    let journals = tempfile::tempdir().expect("a directory");
    let journal = journals.path().join("a");
    write(
        &one.pgdata,
        &patch(&one.pgdata, "global/pg_control"),
        &journal,
        Consent::Marked,
    )
    .expect("written");
    let refused = undo(&journal, Some(&other.pgdata)).expect_err("another cluster");
    assert!(
        refused
            .to_string()
            .starts_with("the journal belongs to the cluster"),
        "{refused}"
    );
    undo(&journal, None).expect("the control file was hurt, and its own bytes prove whose it is");
}

#[test]
fn a_copy_is_marked_and_keeps_owners_and_tablespaces() {
    let copy = copy();
    let to = tempfile::tempdir().expect("a directory");
    let target = to.path().join("copy");
    let made = copy_to(&copy.pgdata, &target).expect("a copy");
    assert_eq!(made.pgdata, target);
    assert_eq!(made.tablespaces.len(), 1);
    assert!(target.join(MARKER_FILE).exists());
    for entry in std::fs::read_dir(target.join("pg_tblspc")).expect("a directory") {
        let link = std::fs::read_link(entry.expect("an entry").path()).expect("a link");
        assert!(
            link.starts_with(to.path().join("copy.tablespaces")),
            "{}",
            link.display()
        );
    }
    let owner = |path: &Path| {
        std::fs::metadata(path)
            .map(|found| (found.uid(), found.mode()))
            .expect("a file")
    };
    for path in ["PG_VERSION", "base", "global/pg_control"] {
        assert_eq!(
            owner(&copy.pgdata.join(path)),
            owner(&target.join(path)),
            "{path}"
        );
    }
    let refused = copy_to(&copy.pgdata, &target).expect_err("there already");
    assert!(
        refused.to_string().contains("it is there already"),
        "{refused}"
    );
}

#[test]
fn a_copy_does_not_go_into_its_own_cluster() {
    let copy = copy();
    let tablespace = copy.tablespaces.first().expect("the seed has one");
    for inside in [
        copy.pgdata.join("new"),
        copy.pgdata.join("base/../new"),
        tablespace.join("new"),
    ] {
        let refused = copy_to(&copy.pgdata, &inside).expect_err("it would copy itself for ever");
        assert!(refused.to_string().contains("does not fit"), "{refused}");
        assert!(!inside.exists(), "nothing was written");
    }
}

/// A server there might take it for its own, and remove it.
#[test]
fn a_journal_never_lies_in_another_data_directory() {
    let (copy, other) = (copy(), copy());
    mark_copy(&copy.pgdata).expect("a mark");
    let patch = patch(&copy.pgdata, "PG_VERSION");
    for journal in ["journal", "pg_wal/journal", "base/not/there/journal"] {
        let journal = other.pgdata.join(journal);
        let refused = write(&copy.pgdata, &patch, &journal, Consent::Marked);
        let refused = refused.expect_err("it is another cluster").to_string();
        assert!(
            refused.contains("inside another data directory"),
            "{refused}"
        );
        assert!(!journal.exists(), "nothing is made there");
    }
    let beside = other.pgdata.with_file_name("journal");
    write(&copy.pgdata, &patch, &beside, Consent::Marked).expect("it lies beside both");
}
