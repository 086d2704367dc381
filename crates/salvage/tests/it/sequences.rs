//! Values of sequences: after a crash those of the server's recovery, and never in silence from a
//! page that was hurt.

use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use common::{options, salvaged, session};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

/// Sequences, and what is done with them before a checkpoint and after it.
const SEQUENCES: [(&str, &str, &str, &str); 7] = [
    (
        "seq_plain",
        "",
        "",
        "SELECT nextval('seq_plain') FROM generate_series(1, 40)",
    ),
    (
        "seq_begun",
        "",
        "SELECT nextval('seq_begun') FROM generate_series(1, 5)",
        "SELECT nextval('seq_begun') FROM generate_series(1, 100)",
    ),
    (
        "seq_settled",
        "",
        "SELECT nextval('seq_settled') FROM generate_series(1, 5)",
        "",
    ),
    ("seq_fresh", "START 10", "", ""),
    ("seq_cached", "CACHE 20", "", "SELECT nextval('seq_cached')"),
    (
        "seq_down",
        "INCREMENT -3",
        "SELECT nextval('seq_down')",
        "SELECT nextval('seq_down') FROM generate_series(1, 7)",
    ),
    (
        "seq_moved",
        "",
        "SELECT nextval('seq_moved')",
        "SELECT setval('seq_moved', 5000, false)",
    ),
];

fn last_values(running: &Server) -> BTreeMap<String, (i64, bool)> {
    let mut session = session(running, "clinic");
    let mut values = BTreeMap::new();
    for (name, ..) in SEQUENCES {
        let rows = session.query(&format!("SELECT last_value, is_called FROM public.{name}"));
        let value = match rows.expect("a row").first().map(Vec::as_slice) {
            Some([Some(last), Some(called)]) => (last.parse().expect("a number"), called == "t"),
            other => panic!("{other:?}"),
        };
        values.insert(name.to_owned(), value);
    }
    values
}

fn salvaged_values(account: &SalvageReport) -> BTreeMap<String, (i64, bool)> {
    let known = account.sequences.iter();
    known
        .filter(|one| SEQUENCES.iter().any(|(name, ..)| *name == one.sequence))
        .map(|one| (one.sequence.clone(), (one.last_value, one.is_called)))
        .collect()
}

fn values_after_a_crash(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut own = session(&running, "clinic");
    let mut run = |sql: &str| match sql {
        "" => {}
        sql => own.execute(sql).expect(sql),
    };
    for (name, how, before, _) in SEQUENCES {
        run(&format!("CREATE SEQUENCE public.{name} {how}"));
        run(before);
    }
    run("CHECKPOINT");
    for (.., after) in SEQUENCES {
        run(after);
    }
    let given = last_values(&running);
    running.kill();

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "copy"));
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:#?}",
        account.not_salvaged
    );
    let found = salvaged_values(&account);
    let again = copy.start().expect("a recovery");
    assert_eq!(found, last_values(&again), "{major}");
    for (name, (last, _)) in &given {
        let (value, is_called) = found[name];
        // What was given out is behind it, so that it is not given out again.
        match name.as_str() {
            "seq_down" => assert!(value <= *last && is_called, "{name}: {value}, {last}"),
            _ => assert!(value >= *last, "{name}: {value}, {last}"),
        }
    }
}

#[test]
fn of_13_after_a_crash() {
    values_after_a_crash(13);
}

#[test]
fn of_15_after_a_crash() {
    values_after_a_crash(15);
}

#[test]
fn of_18_after_a_crash() {
    values_after_a_crash(18);
}

#[test]
fn a_hurt_page_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut own = session(&running, "clinic");
    own.execute("CREATE SEQUENCE public.hurt; SELECT setval('public.hurt', 1000); CREATE SEQUENCE public.low MAXVALUE 9; CHECKPOINT")
        .expect("sequences");
    let path = |own: &mut pgclinic_servers::Session, name: &str| {
        let asked = own.query_value(&format!("SELECT pg_relation_filepath('public.{name}')"));
        copy.pgdata.join(asked.expect("a path").expect("a file"))
    };
    let paths = ["hurt", "low"].map(|name| path(&mut own, name));
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");
    for path in &paths {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .expect("a file");
        let mut page = vec![0; 8192];
        file.read_exact_at(&mut page, 0).expect("a page");
        // pd_upper, and behind it the header of the one row.
        let value = usize::from(u16::from_le_bytes([page[14], page[15]])) + 24;
        file.write_all_at(&[page[value] ^ 0x40], value as u64)
            .expect("hurt");
    }

    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "copy"));
    assert_eq!(account.outcome, Outcome::Damaged);
    let told: Vec<(&str, i64, &str)> = account
        .sequences
        .iter()
        .filter_map(|one| Some((one.sequence.as_str(), one.last_value, one.doubt.as_deref()?)))
        .collect();
    let why = "the checksum of its page is wrong: the value was taken as it is";
    assert_eq!(told, [("hurt", 1000 ^ 0x40, why), ("low", 1 ^ 0x40, why)]);
    let script =
        std::fs::read_to_string(destination.join("clinic/sequences.sql")).expect("a script");
    assert!(
        script.contains(&format!(
            "-- {why}\nSELECT pg_catalog.setval('\"public\".\"hurt\"', 936, true);"
        )),
        "{script}"
    );
}

/// Without checksums a value may still say that it is none of its sequence.
#[test]
fn a_value_outside_its_bounds_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    let mut own = session(&running, "clinic");
    own.execute("CREATE SEQUENCE public.low MAXVALUE 9; CHECKPOINT")
        .expect("a sequence");
    let path = own
        .query_value("SELECT pg_relation_filepath('public.low')")
        .expect("a path");
    let path = copy.pgdata.join(path.expect("a file"));
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a file");
    let mut page = vec![0; 8192];
    file.read_exact_at(&mut page, 0).expect("a page");
    let value = usize::from(u16::from_le_bytes([page[14], page[15]])) + 24;
    file.write_all_at(&[0x40], value as u64).expect("hurt");

    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "copy"));
    assert_eq!(account.outcome, Outcome::Damaged);
    let told = account
        .sequences
        .iter()
        .filter_map(|one| one.doubt.as_deref());
    let told: Vec<&str> = told.collect();
    assert_eq!(told, ["the value is outside the bounds of the sequence"]);
}
