//! Databases that come and go: directories that an interrupted `CREATE DATABASE` left, databases
//! that are made and dropped while the server is asked, and one without a table.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{pgclinic, told, url};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{Load, TempCopy, busy, copy_of, seed, server, started, value};

/// A directory with this number is no seed's.
const LEFT: &str = "base/77777";
const WHY: &str = "an interrupted CREATE DATABASE left it";

/// A cluster with the part of a copy of its database that a server wrote before it was killed.
fn with_a_part_of_a_copy() -> TempCopy {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start().expect("a server");
    let sql = "SELECT oid FROM pg_database WHERE datname = current_database()";
    let source = copy.pgdata.join("base").join(value(&server, sql));
    server.stop(StopMode::Fast).expect("a stop");
    let left = copy.pgdata.join(LEFT);
    fs::create_dir(&left).expect("a directory");
    let mut files: Vec<PathBuf> = entries(&source);
    files.sort();
    let part = files.len() * 2 / 3;
    for file in &files[..part] {
        let name = file.file_name().expect("a name");
        fs::copy(file, left.join(name)).expect("a copy");
    }
    copy
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// A file with a page, of a number that no cluster is made with.
fn table_of_a_user(folder: &Path) -> PathBuf {
    let mut files = entries(folder).into_iter();
    let is_one = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.parse::<u32>().ok());
        let len = fs::metadata(file).expect("a file").len();
        number.is_some_and(|number| number >= 16384) && len >= 8192
    };
    files.find(is_one).expect("a table")
}

/// Nothing can be lost in what no row names and another database holds; one more file, and it was a
/// database.
#[test]
fn what_an_interrupted_create_database_left_is_no_damage() {
    let copy = with_a_part_of_a_copy();
    let pgdata = common::text(&copy.pgdata);
    for level in ["pages", "structure", "full"] {
        let ran = pgclinic(&["check", pgdata, "--level", level, "--format", "json"]).exits(0);
        let document = ran.document();
        let mut gaps = document.coverage.not_checked.iter();
        let own = gaps.find(|gap| gap.why.starts_with(WHY));
        assert!(own.is_some_and(|own| own.inherent), "{}", told(&document));
    }
    let folder = tempfile::tempdir().expect("a directory");
    let to = |name: &str| common::text(&folder.path().join(name)).to_owned();
    let ran = pgclinic(&["salvage", pgdata, "--to", &to("all")]).exits(0);
    assert!(ran.out.contains("base/77777"), "{}", ran.out);
    pgclinic(&["measure", pgdata]).exits(0);
    let named = [
        "salvage",
        pgdata,
        "--database",
        "77777",
        "--to",
        &to("left"),
    ];
    let ran = pgclinic(&named);
    assert!(matches!(ran.exit, 0 | 1 | 3), "{}", ran.err);

    // A page that somebody changed since: it was a database.
    let changed = table_of_a_user(&copy.pgdata.join(LEFT));
    let before = fs::read(&changed).expect("a file");
    let mut bytes = before.clone();
    bytes[4..8].copy_from_slice(&0x7FFF_FF00u32.to_le_bytes());
    bytes[8000] ^= 0xFF;
    fs::write(&changed, bytes).expect("a write");
    let ran = pgclinic(&["check", pgdata, "--format", "json"]);
    assert!(matches!(ran.exit, 1 | 3), "{}", ran.out);
    assert!(!ran.out.contains(WHY), "{}", ran.out);
    fs::write(&changed, before).expect("as it was");

    fs::write(copy.pgdata.join(LEFT).join("99999"), vec![0; 8192]).expect("a file");
    let ran = pgclinic(&["check", pgdata, "--format", "json"]);
    assert!(matches!(ran.exit, 1 | 3), "{}", ran.out);
    assert!(!ran.out.contains(WHY), "{}", ran.out);
}

/// A database without a table of a user is whole without a row.
#[test]
fn a_database_without_tables_is_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let to = folder.path().join("none");
    let line = [
        "salvage",
        common::text(&copy.pgdata),
        "--database",
        "template1",
    ];
    let ran = pgclinic(&[&line[..], &["--to", common::text(&to)]].concat()).exits(0);
    assert!(ran.first_line().starts_with("WHOLE  0 rows"), "{}", ran.out);
}

/// The server's catalogs and files pass at other moments than databases come and go.
#[test]
fn beside_create_and_drop_database_a_server_is_healthy() {
    let options = busy()
        .with("wal_level", "replica")
        .with("max_wal_senders", "4");
    let (_copy, running) = started(15, Checksums::On, &options);
    let target = url(&running, "postgres");
    let coming = "CREATE DATABASE one STRATEGY file_copy; CREATE DATABASE two STRATEGY wal_log; \
                  DROP DATABASE one; DROP DATABASE two";
    let load = Load::start(&running, &[coming]);
    for _ in 0..4 {
        let ran = pgclinic(&["check", &target, "--format", "json"]);
        assert_eq!(ran.exit, 0, "{}\n{}", told(&ran.document()), ran.err);
    }
    assert!(load.stop() > 0);
}
