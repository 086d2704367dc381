//! Files that a run writes: refused before the work where they cannot be, never in what is looked
//! at, and a report that is lost is no success.

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::Path;

use common::{SmallDisk, files, pgclinic, text};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, scratch, seed};

const PAGE: u64 = 8192;
/// `pg_proc` of a template.
const TABLE: &str = "base/1/1255";

fn newest() -> TempCopy {
    let installation = all_majors().pop().expect("the newest");
    copy_of(&seed(&installation, Checksums::On))
}

fn damaged() -> TempCopy {
    let copy = newest();
    let mut options = std::fs::File::options();
    let file = options.write(true).open(copy.pgdata.join(TABLE));
    let file = file.expect("a file");
    file.write_all_at(&[7; 64], 2 * PAGE + 6000).expect("hurt");
    copy
}

/// Nothing was looked at, and one line says why.
#[track_caller]
fn refused(words: &[&str], why: &str) {
    let ran = pgclinic(words).exits(2);
    assert_eq!(ran.out, "", "{words:?}");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains(why), "{words:?}: {}", ran.err);
}

#[test]
fn nothing_is_written_into_a_target() {
    let (copy, other) = (newest(), newest());
    let folder = scratch();
    let (pgdata, b) = (text(&copy.pgdata), text(&other.pgdata));
    let before = files(&copy.pgdata);
    let page = copy.pgdata.join(TABLE);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(copy.pgdata.join("base"), &link).expect("a link");
    let space = copy.tablespaces.first().expect("a tablespace");
    let to = folder.path().join("rows");
    let salvage = ["salvage", pgdata, "--to", text(&to)];
    for place in [&copy.pgdata, &copy.pgdata.join("base/1"), &link, space] {
        let own = place.join("report.txt");
        let own = text(&own);
        let why = "to which nothing is written";
        refused(&["check", pgdata, "--output", own], why);
        refused(&["check", pgdata, "--state", own], "write the state");
        refused(&["measure", pgdata, "--output", own], why);
        refused(&["inspect", pgdata, "--output", own], why);
        refused(&["diff", b, pgdata, "--output", own], why);
        refused(&[&salvage[..], &["--account", own]].concat(), "the account");
        refused(&[&salvage[..], &["--ddl", own]].concat(), "the schema");
    }
    let own = copy.pgdata.join("report.txt");
    refused(
        &["check", text(&page), "--output", text(&own)],
        "to which nothing",
    );
    assert!(before == files(&copy.pgdata), "nothing was written");
    assert!(!to.exists());
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let copy = damaged();
    let pgdata = text(&copy.pgdata);
    // Damage would be told, if anything were looked at.
    refused(
        &["check", pgdata, "--state", "/nowhere/state"],
        "cannot write the state /nowhere/state",
    );
    refused(
        &["check", pgdata, "--output", "/nowhere/report"],
        "cannot write the report /nowhere/report",
    );
    refused(
        &["diff", pgdata, pgdata, "--format", "prometheus"],
        "have no form prometheus: --format takes text, json, html here",
    );
    refused(
        &["measure", pgdata, "--format", "sarif"],
        "have no form sarif: --format takes text, json, html, prometheus here",
    );
    let saved = ["report", "/nowhere/saved.json", "--output", "/"];
    refused(&saved, "cannot write the report /");
    let ran = pgclinic(&["measure", pgdata, "--output", "/proc/report"]).exits(2);
    assert!(ran.err.contains("cannot write the report"), "{}", ran.err);
}

/// Whoever reads the report must not take its absence for a verdict.
#[test]
fn a_report_that_does_not_fit_is_a_failure_whatever_stands_in_it() {
    let (sound, hurt) = (newest(), damaged());
    let check = |copy: &TempCopy, exit| {
        let words = ["check", text(&copy.pgdata), "--level", "pages"];
        let ran = pgclinic(&[&words[..], &["--output", "/dev/full"]].concat()).exits(exit);
        let why = "cannot write the report /dev/full";
        assert!(ran.err.contains(why), "{}", ran.err);
    };
    check(&sound, 2);
    check(&hurt, 2);
}

#[test]
fn damage_outlives_a_state_that_does_not_fit() {
    // Room for the first state, and not for one with a damaged page.
    let Some(disk) = SmallDisk::new("12k") else {
        return;
    };
    let copy = damaged();
    let state = disk.path.join("state");
    let ran = state_of(&copy, &state).exits(1);
    assert!(ran.first_line().starts_with("DAMAGED"), "{}", ran.out);
    let why = format!("cannot write the state {}", state.display());
    assert!(ran.err.contains(&why), "{}", ran.err);
}

fn state_of(copy: &TempCopy, state: &Path) -> common::Ran {
    let line = ["check", text(&copy.pgdata), "--evidence", "100"];
    pgclinic(&[&line[..], &["--state", text(state)]].concat())
}

/// Nothing stands in the way of the next run.
#[test]
fn a_state_that_was_refused_leaves_no_file() {
    let copy = newest();
    let folder = tempfile::tempdir().expect("a directory");
    let state = folder.path().join("state");
    let words = ["check", text(&copy.pgdata), "--since", "/nowhere/older"];
    let ran = pgclinic(&[&words[..], &["--state", text(&state)]].concat()).exits(2);
    assert!(ran.err.contains("/nowhere/older"), "{}", ran.err);
    assert!(!state.exists());
    state_of(&copy, &state).exits(0);
    let read = std::fs::read_to_string(&state).expect("a state");
    assert!(read.contains("\"complete\":true"), "{read}");
}
