//! One read for both: `check --with measure` says to the byte what `check` and `measure` say.

use std::fs;
use std::path::{Path, PathBuf};

use pgclinic_servers::Checksums;
use pgclinic_testkit::{TempCopy, busy, copy_of, seed, server, started};
use serde_json::Value;

use crate::common::{pgclinic, text};

/// A document without what differs from run to run.
fn said(words: &[&str], exit: u8) -> Value {
    let words = [words, &["--format", "json"]].concat();
    let own = pgclinic(&words);
    assert_eq!(own.exit, exit, "{words:?}: {}", own.err);
    let mut document: Value = serde_json::from_str(&own.out).expect("a document");
    forget_time(&mut document);
    document
}

fn forget_time(document: &mut Value) {
    let fields = document.as_object_mut().expect("an object");
    fields.remove("elapsed_s");
    if let Some(measured) = fields.get_mut("measured") {
        forget_time(measured);
    }
}

/// Both say what each says, and exit with the code of whichever has more to say.
fn agree(pgdata: &Path, more: &[&str], exits: [u8; 3]) {
    let words = |verb| [&[verb, text(pgdata)], more].concat();
    let mut both = said(
        &[words("check"), vec!["--with", "measure"]].concat(),
        exits[0],
    );
    let measured = both.as_object_mut().and_then(|own| own.remove("measured"));
    assert_eq!(both, said(&words("check"), exits[1]), "{more:?}");
    assert_eq!(
        measured,
        Some(said(&words("measure"), exits[2])),
        "{more:?}"
    );
}

fn filled(major: u16) -> TempCopy {
    copy_of(&seed(&server(major), Checksums::On))
}

/// The largest relation file of a user's, in the database with most of them.
fn largest(copy: &TempCopy) -> PathBuf {
    let mut files = Vec::new();
    for directory in fs::read_dir(copy.pgdata.join("base")).expect("databases") {
        let directory = directory.expect("a database").path();
        files.extend(fs::read_dir(directory).expect("files").flatten());
    }
    let users = files.into_iter().filter(|file| {
        let name = file.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
        number.is_some_and(|number| number >= 16_384)
    });
    let largest = users.max_by_key(|file| file.metadata().map_or(0, |own| own.len()));
    largest.expect("a table").path()
}

#[test]
fn a_sound_cluster_is_checked_and_measured_in_one_read() {
    let copy = filled(15);
    agree(&copy.pgdata, &[], [0, 0, 0]);
    agree(
        &copy.pgdata,
        &["--jobs", "1", "--database", "clinic"],
        [0, 0, 0],
    );
    let full = said(
        &[
            "check",
            text(&copy.pgdata),
            "--level",
            "full",
            "--with",
            "measure",
        ],
        0,
    );
    let relations = full
        .pointer("/measured/relations")
        .and_then(Value::as_array);
    assert!(relations.is_some_and(|own| own.len() > 100), "{full}");
}

/// Forks of which not all bytes come are read once more for the figures.
#[test]
fn figures_of_a_damaged_cluster_are_those_of_measure() {
    let copy = filled(18);
    let path = largest(&copy);
    let mut bytes = fs::read(&path).expect("a file");
    let len = bytes.len();
    bytes[8192..8192 + 4096].fill(0xA5);
    bytes.truncate(len - 1000);
    fs::write(&path, bytes).expect("damaged");
    agree(&copy.pgdata, &[], [1, 1, 3]);
}

#[test]
fn a_running_server_is_checked_and_measured() {
    let (copy, _server) = started(15, Checksums::Off, &busy());
    let both = said(&["check", text(&copy.pgdata), "--with", "measure"], 0);
    let relations = both
        .pointer("/measured/relations")
        .and_then(Value::as_array);
    assert!(relations.is_some_and(|own| own.len() > 100), "{both}");
}

#[test]
fn what_cannot_be_joined_is_refused_before_the_work() {
    let copy = filled(15);
    let file = largest(&copy);
    let one_file = pgclinic(&["check", text(&file), "--with", "measure"]);
    assert_eq!(one_file.exit, 2, "{}", one_file.out);
    assert!(one_file.err.contains("whole cluster"), "{}", one_file.err);
    let since = [
        "check",
        text(&copy.pgdata),
        "--with",
        "measure",
        "--since",
        "x",
    ];
    assert_eq!(pgclinic(&since).exit, 2);
}

#[test]
fn text_ends_with_the_figures() {
    let copy = filled(15);
    let both = pgclinic(&["check", text(&copy.pgdata), "--with", "measure"]);
    assert_eq!(both.exit, 0, "{}", both.err);
    let (checked, measured) = both
        .out
        .split_once("Measured from the same files")
        .expect("two parts");
    assert!(checked.contains("HEALTHY"), "{checked}");
    assert!(measured.contains("relations"), "{measured}");
}
