//! A destination that fills up: an exit code, no half file under its name, and the same command
//! with `--resume` when there is room; the same for a server whose disk fills up.

use pgclinic_model::document::SalvageReport;

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{SmallDisk, files, pgclinic, text};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode, TextRow};
use pgclinic_testkit::{copy_of, run_as, seed, server};

fn account(folder: &Path) -> SalvageReport {
    let account = fs::read(folder.join("salvage.json")).expect("an account");
    let mut account: SalvageReport = serde_json::from_slice(&account).expect("a document");
    account.elapsed_s = 0.0;
    account.destination = None;
    account
}

/// The files of the tables.
fn tables(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = files(folder);
    found.retain(|path, _| !path.ends_with("salvage.json") && !path.ends_with("salvage.html"));
    found
        .into_iter()
        .map(|(path, bytes)| (path.strip_prefix(folder).unwrap_or(&path).to_owned(), bytes))
        .collect()
}

#[test]
fn a_full_disk_ends_the_work_and_room_lets_it_go_on() {
    let Some(disk) = SmallDisk::new("3m") else {
        return;
    };
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let elsewhere = tempfile::tempdir().expect("a directory");
    let whole = elsewhere.path().join("whole");
    let words = ["--format", "copy", "--database", "clinic"];
    pgclinic(
        &[
            &["salvage", text(&copy.pgdata), "--to", text(&whole)][..],
            &words,
        ]
        .concat(),
    )
    .exits(0);
    let expected = tables(&whole);

    let out = disk.path.join("out");
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];
    let full = pgclinic(&[&to[..], &words].concat()).exits(2);
    assert!(full.err.contains("No space left on device"), "{}", full.err);
    let begun = tables(&out);
    assert!(begun.len() > 1, "some tables fit");
    for (path, bytes) in &begun {
        let name = path.to_string_lossy();
        assert!(!name.ends_with(".part"), "{name}");
        if name != "salvage.progress" {
            assert!(expected.get(path) == Some(bytes), "{name}");
        }
    }
    assert!(!out.join("salvage.json").exists());

    disk.grow("256m");
    pgclinic(&[&to[..], &words, &["--resume"]].concat()).exits(0);
    assert!(tables(&out) == expected);
    assert_eq!(account(&out), account(&whole));
}

/// The account that does not fit is no lost work either.
#[test]
fn an_account_that_does_not_fit_can_be_written_later() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let to = [
        "salvage",
        text(&copy.pgdata),
        "--to",
        text(&out),
        "--relation",
        "sales.*",
    ];
    let full = pgclinic(&[&to[..], &["--account", "/dev/full"]].concat()).exits(2);
    assert!(full.err.contains("/dev/full"), "{}", full.err);
    pgclinic(&[&to[..], &["--resume"]].concat()).exits(0);
    assert!(out.join("salvage.json").exists() && !out.join("salvage.progress").exists());
}

/// The same into a server: it knows what is there until the account is written.
#[test]
fn an_account_of_a_server_that_does_not_fit_can_be_written_later() {
    let source = copy_of(&seed(&server(15), Checksums::On));
    let elsewhere = copy_of(&seed(&server(15), Checksums::On));
    let running = elsewhere.start().expect("a server");
    let mut session = running.connect("postgres").expect("a session");
    session
        .execute("CREATE DATABASE again TEMPLATE template0")
        .expect("a database");
    let url = ConnectionTarget::of(&running, "again").to_string();
    let from = text(&source.pgdata);
    let to = ["salvage", from, "--database", "clinic", "--to", &url];
    let full = pgclinic(&[&to[..], &["--account", "/dev/full"]].concat()).exits(2);
    assert!(full.err.contains("/dev/full"), "{}", full.err);
    let folder = tempfile::tempdir().expect("a directory");
    let written = folder.path().join("salvage.json");
    pgclinic(&[&to[..], &["--account", text(&written)]].concat()).exits(0);
    assert!(!account(folder.path()).tables.is_empty());
    let mut again = running.connect("again").expect("a session");
    let ledger = again.query_value("SELECT to_regnamespace('pgclinic_salvage')");
    assert_eq!(ledger.expect("an answer"), None);
}

/// Rows of every table of a database, as sums.
fn sums(server: &Server, database: &str) -> Vec<TextRow> {
    let mut session = server.connect(database).expect("a session");
    let tables = "SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
                  WHERE relkind IN ('r', 'm') AND nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1";
    let tables = session
        .query(tables)
        .expect("tables")
        .into_iter()
        .flatten()
        .flatten();
    let tables: Vec<String> = tables.collect();
    let mut sums = Vec::new();
    for table in tables {
        let sum = format!(
            "SELECT '{}', count(*), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) FROM ONLY {table} t",
            table.replace('\'', "''")
        );
        sums.extend(
            session
                .query(&sum)
                .unwrap_or_else(|error| panic!("{table}: {error}")),
        );
    }
    sums
}

/// A server whose disk is full, in whatever stage of the work: an error that says so, nothing
/// counted as whole that is not, and the same command goes on when there is room.
#[test]
fn a_server_with_a_full_disk_is_gone_on_with() {
    let Some(disk) = SmallDisk::new("256m") else {
        return;
    };
    let source = copy_of(&seed(&server(15), Checksums::On));
    let mut running = source.start().expect("a server");
    let expected = sums(&running, "clinic");
    running.stop(StopMode::Fast).expect("stopped");

    let elsewhere = copy_of(&seed(&server(15), Checksums::On));
    let running = elsewhere.start().expect("a server");
    let space = disk.path.join("space");
    fs::create_dir(&space)
        .and_then(|()| fs::write(disk.path.join("ballast"), b""))
        .expect("a directory");
    run_as()
        .own(&disk.path)
        .and_then(|()| run_as().own(&space))
        .expect("owned");
    let mut session = running.connect("postgres").expect("a session");
    session
        .execute(&format!(
            "CREATE TABLESPACE small LOCATION '{}'",
            space.display()
        ))
        .expect("a tablespace");
    session
        .execute("CREATE DATABASE again TEMPLATE template0 TABLESPACE small")
        .expect("a database");
    // A new database has holes in its files until they are written for the first time.
    session.execute("CHECKPOINT").expect("a checkpoint");
    drop(session);
    // All room is taken, and given back bit by bit.
    let ballast = fs::File::options()
        .write(true)
        .open(disk.path.join("ballast"))
        .expect("a file");
    let mut bytes = 0u64;
    let noise = vec![1; 64 << 10];
    while std::io::Write::write_all(&mut (&ballast), &noise).is_ok() {
        bytes += noise.len() as u64;
    }
    let url = ConnectionTarget::of(&running, "again").to_string();
    let line = [
        "salvage",
        text(&source.pgdata),
        "--database",
        "clinic",
        "--to",
        &url,
    ];
    let mut refused = 0;
    loop {
        let ran = pgclinic(&line);
        if ran.exit != 2 {
            assert_eq!(ran.exit, 0, "{}{}", ran.out, ran.err);
            break;
        }
        refused += 1;
        // What a server says of no room at all, of some, and to a session that finds none for its
        // first file.
        let words = [
            "No space left on device",
            "Check free disk space",
            "could not write init file",
        ];
        let is_said = words.iter().any(|words| ran.err.contains(words));
        assert!(is_said, "{}", ran.err);
        assert!(ran.err.contains("The same command goes on"), "{}", ran.err);
        bytes = bytes
            .checked_sub(1 << 20)
            .expect("room enough for all of it");
        ballast.set_len(bytes).expect("room");
    }
    assert!(refused > 2, "{refused}");
    // Reading needs room too: pages in memory are written to make place for others.
    ballast.set_len(0).expect("room");
    assert_eq!(sums(&running, "again"), expected);
    let indexes = "SELECT count(*) FROM pg_class WHERE relkind = 'i' AND relnamespace > 16384";
    let count = |server: &Server, database: &str| {
        server
            .connect(database)
            .expect("a session")
            .query_value(indexes)
            .expect("a count")
    };
    let found = count(&running, "again");
    drop(running);
    let running = source.start().expect("a server");
    assert_eq!(found, count(&running, "clinic"));
}
