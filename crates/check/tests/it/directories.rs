//! Directories of a cluster that are not there, and what a real server does without them.

use std::path::Path;

use pgclinic_model::{CheckDocument, Level, Severity, Verdict};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{TempCopy, checked, copy_of, open, seed, server};

const NEEDED: [&str; 10] = [
    "pg_twophase",
    "pg_notify",
    "pg_replslot",
    "pg_commit_ts",
    "pg_subtrans",
    "pg_logical/snapshots",
    "pg_logical/mappings",
    "pg_multixact/offsets",
    "pg_multixact/members",
    "pg_xact",
];
const MISSED: [&str; 6] = [
    "pg_tblspc",
    "pg_stat",
    "pg_stat_tmp",
    "pg_serial",
    "pg_snapshots",
    "pg_dynshmem",
];

fn look(pgdata: &Path) -> CheckDocument {
    checked(&open(pgdata), Level::Pages)
}

/// The severity of what is said of the directory.
fn told(document: &CheckDocument, path: &str) -> Option<Severity> {
    let own = |finding: &&pgclinic_model::Finding| {
        finding.rule == "missing-directory" && finding.place.path == path
    };
    document.findings.iter().find(own).map(|own| own.severity)
}

/// What a look says while the directory is elsewhere.
fn without(copy: &TempCopy, path: &str) -> CheckDocument {
    let aside = copy.pgdata.with_extension("aside");
    std::fs::rename(copy.pgdata.join(path), &aside).expect("moved");
    let document = look(&copy.pgdata);
    std::fs::rename(&aside, copy.pgdata.join(path)).expect("moved back");
    document
}

fn each_directory_is_missed(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    assert_eq!(look(&copy.pgdata).verdict, Verdict::Healthy, "{major}");
    for path in NEEDED {
        let document = without(&copy, path);
        assert_eq!(told(&document, path), Some(Severity::Damage), "{path}");
        assert_eq!(document.verdict, Verdict::Damaged, "{path}");
    }
    for path in MISSED {
        let document = without(&copy, path);
        assert_eq!(told(&document, path), Some(Severity::Warning), "{path}");
        // The seed has a tablespace, and the database in it is missed too.
        let is_sound = document.verdict == Verdict::Healthy;
        assert_eq!(is_sound, path != "pg_tblspc", "{path}");
    }
    let remade = without(&copy, "pg_wal/archive_status");
    assert!(remade.findings.is_empty(), "{:?}", remade.findings);
}

#[test]
fn each_directory_of_15_is_missed() {
    each_directory_is_missed(15);
}

#[test]
fn each_directory_of_18_is_missed() {
    each_directory_is_missed(18);
}

/// The server lists these at its start, and so says the finding.
#[test]
fn a_server_does_not_start_without_them() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    for path in ["pg_twophase", "pg_notify", "pg_replslot", "pg_commit_ts"] {
        std::fs::remove_dir_all(copy.pgdata.join(path)).expect("removed");
        let refused = copy.start().expect_err("it does not start").to_string();
        let document = look(&copy.pgdata);
        let own = |finding: &&pgclinic_model::Finding| finding.place.path == path;
        let finding = document.findings.iter().find(own).expect("a finding");
        let words = finding.server_says.as_deref().expect("words");
        let words = words.trim_start_matches("FATAL:  ");
        assert!(refused.contains(words), "{words}: {refused}");
        let made = std::fs::create_dir(copy.pgdata.join(path));
        made.expect("made again");
        std::os::unix::fs::chown(copy.pgdata.join(path), owner(&copy.pgdata), None)
            .expect("the server's own");
    }
    assert_eq!(look(&copy.pgdata).verdict, Verdict::Healthy);
    copy.start().expect("it starts with all of them");
}

fn owner(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(path).expect("it is there").uid())
}

/// A link that leads to itself is there, and nobody can say what is behind it.
#[test]
fn what_is_out_of_reach_is_not_missing() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let path = copy.pgdata.join("pg_notify");
    std::fs::remove_dir_all(&path).expect("removed");
    std::os::unix::fs::symlink("pg_notify", &path).expect("a link");
    let document = look(&copy.pgdata);
    assert_eq!(told(&document, "pg_notify"), None);
    assert_eq!(document.verdict, Verdict::Incomplete);
}

/// Recovery does not write it again, and nobody can connect after it.
#[test]
fn the_version_file_of_a_database_is_missed_after_a_crash() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT oid FROM pg_database WHERE datname = 'clinic'";
    let oid = session.query_value(sql).expect(sql).expect("an OID");
    session
        .execute("CREATE TABLE public.made AS SELECT 1 AS one")
        .expect("some WAL");
    session
        .execute("CREATE DATABASE newer")
        .expect("a database that only WAL knows");
    server.kill();
    let rules = || {
        let findings = look(&copy.pgdata).findings.into_iter();
        let loud = findings.filter(|finding| finding.severity == Severity::Damage);
        loud.map(|own| format!("{} {}", own.rule, own.place.path))
            .collect::<Vec<_>>()
    };
    assert_eq!(rules(), [""; 0], "a crash is no damage");
    let path = format!("base/{oid}/PG_VERSION");
    let expected = [format!("version-file {path}")];
    std::fs::write(copy.pgdata.join(&path), "").expect("emptied");
    assert_eq!(rules(), expected, "empty");
    std::fs::remove_file(copy.pgdata.join(&path)).expect("removed");
    assert_eq!(rules(), expected, "missing");
}
