//! GiST and SP-GiST indexes of every built-in operator class, grown to three levels by building and
//! by inserting, with deleted pages, redirects and placeholders, and after a crash: all silent.

use std::path::Path;

use pgclinic_model::{Level, Severity};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{TempCopy, checked, copy_of, open, seed, server};

/// Half of the rows come before the indexes, half after; one statement a batch.
const GROW: &str = include_str!("trees.sql");

fn grow(server: &Server, major: u16) {
    let mut session = server.connect("postgres").expect("a session");
    for batch in GROW.split("\n\n").map(str::trim) {
        let head = batch.lines().next().unwrap_or_default();
        let since = head
            .strip_prefix("-- since ")
            .and_then(|since| since.parse::<u16>().ok());
        if batch.is_empty() || since.is_some_and(|since| since > major) {
            continue;
        }
        session
            .execute(batch)
            .unwrap_or_else(|error| panic!("{batch}: {error}"));
    }
}

fn complaints(pgdata: &Path) -> Vec<String> {
    let findings = checked(&open(pgdata), Level::Full).findings.into_iter();
    let loud = findings.filter(|finding| finding.severity != Severity::Note);
    loud.map(|finding| {
        let place = &finding.place;
        format!(
            "{:?} block {:?} item {:?} {}: {}",
            place.relation, place.block, place.item, finding.rule, finding.message
        )
    })
    .take(20)
    .collect()
}

fn grown(major: u16) -> TempCopy {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut server = copy.start().expect("the server starts");
    grow(&server, major);
    server.stop(StopMode::Fast).expect("the server stops");
    copy
}

/// Some inserts, then the end of all processes; the next start replays.
fn crash(copy: &TempCopy) {
    let mut server = copy.start().expect("the server starts");
    let mut session = server.connect("postgres").expect("a session");
    let more = "CHECKPOINT; INSERT INTO trees SELECT * FROM trees WHERE id < 2000; DELETE FROM trees WHERE id % 5 = 0";
    for sql in more.split(';') {
        session.execute(sql).expect("more rows");
    }
    drop(session);
    server.stop(StopMode::Immediate).expect("the server ends");
}

fn trees_are_silent(major: u16) {
    let copy = grown(major);
    assert_eq!(complaints(&copy.pgdata), [""; 0], "version {major}");
    crash(&copy);
    assert_eq!(
        complaints(&copy.pgdata),
        [""; 0],
        "version {major}, crashed"
    );
    let mut server = copy.start().expect("the server replays");
    let mut session = server.connect("postgres").expect("a session");
    session.execute("VACUUM trees").expect("a vacuum");
    drop(session);
    server.stop(StopMode::Fast).expect("the server stops");
    assert_eq!(
        complaints(&copy.pgdata),
        [""; 0],
        "version {major}, replayed"
    );
}

#[test]
fn trees_of_13_are_silent() {
    trees_are_silent(13);
}

#[test]
fn trees_of_15_are_silent() {
    trees_are_silent(15);
}

#[test]
fn trees_of_18_are_silent() {
    trees_are_silent(18);
}
