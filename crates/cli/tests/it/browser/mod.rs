//! Every kind of page in a real Chromium, as a reader uses it: `pages.py` sorts, filters, follows
//! links, goes by the keyboard, and looks at phone, paper, light and dark.
//!
//! `PGCLINIC_PLAYWRIGHT` names the Python that has Playwright; `.ci/run` makes it. Where it is not
//! set, a `python3` that happens to have it is taken, and else the test says that it was skipped.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pgclinic_servers::Checksums;
use pgclinic_testkit::{as_primary, started};

use crate::common::{pgclinic, skipped, text, url};
use crate::reports_beside::Reports;
use crate::watch::HOSTILE;

const SCRIPT: &str = "tests/it/browser/pages.py";
/// Documents of drills and of an experiment, which take minutes to make: as the program wrote them,
/// with fewer entries.
const SAVED: &str = "tests/it/browser/documents";

/// The Python that has Playwright, if there is one.
fn python() -> Option<OsString> {
    if let Some(given) = std::env::var_os("PGCLINIC_PLAYWRIGHT") {
        return Some(given);
    }
    let asked = Command::new("python3")
        .args(["-c", "import playwright.sync_api"])
        .output();
    asked
        .is_ok_and(|answer| answer.status.success())
        .then(|| "python3".into())
}

fn saved_documents() -> Vec<PathBuf> {
    let entries = fs::read_dir(SAVED).expect("the documents");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

/// Pages of saved documents, beside those of the damaged cluster.
fn print_saved(reports: &Reports) -> usize {
    let documents = saved_documents();
    for document in &documents {
        let name = document.file_stem().and_then(|name| name.to_str());
        reports.page(name.expect("a name"), &["report", text(document)]);
    }
    documents.len()
}

fn driven(python: &OsString, pages: &Path) -> Output {
    let mut script = Command::new(python);
    let run = script.arg(SCRIPT).arg(pages).output();
    run.unwrap_or_else(|error| panic!("{}: {error}", python.to_string_lossy()))
}

/// What the script says it tried of this.
fn tried(said: &str, what: &str) -> usize {
    let (_, line) = said.rsplit_once("tried: ").expect("what was tried");
    let mut counts = line
        .trim()
        .split(", ")
        .filter_map(|own| own.split_once(' '));
    let count = counts.find(|(_, name)| *name == what);
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

/// Live signs of a server whose tables and databases are called like a script.
fn print_live_signs(page: &Path) {
    let (_copy, server) = started(18, Checksums::On, &as_primary());
    let mut session = server.connect("clinic").expect("a session");
    let name = HOSTILE.replace('"', "\"\"");
    for statement in [
        format!("CREATE DATABASE \"{}\"", name),
        format!("CREATE TABLE \"{name}\" AS SELECT 1 AS a FROM generate_series(1, 20000)"),
        format!("DELETE FROM \"{name}\""),
        "SELECT pg_stat_force_next_flush()".to_owned(),
    ] {
        session.execute(&statement).expect(&statement);
    }
    let url = url(&server, "postgres");
    let samples = ["--samples", "2", "--interval", "1"];
    let output = ["--format", "html", "--output", text(page)];
    pgclinic(&[&["watch", &url], &samples[..], &output].concat()).exits(0);
}

#[test]
fn live_signs_are_read_in_a_browser() {
    let Some(python) = python() else {
        skipped("the page of live signs was not tried: there is no Python that has Playwright");
        return;
    };
    let home = tempfile::tempdir().expect("a directory");
    print_live_signs(&home.path().join("watch.html"));
    let output = driven(&python, home.path());
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    for (what, least) in [
        ("pages", 1),
        ("folds", 3),
        ("stops", 5),
        ("widths", 4),
        ("colours", 2),
    ] {
        assert!(tried(&said, what) >= least, "{what}: {said}");
    }
}

#[test]
fn pages_are_read_in_a_browser() {
    let Some(python) = python() else {
        skipped(
            "no page was tried in a browser: PGCLINIC_PLAYWRIGHT names no Python that has Playwright",
        );
        return;
    };
    let reports = Reports::new();
    // That of the demonstration, and that of what was hurt.
    let salvaged = 2;
    let pages = Reports::NAMES.len() + salvaged + print_saved(&reports);
    let output = driven(&python, reports.home());
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    assert_eq!(tried(&said, "pages"), pages, "{said}");
    for (what, least) in [
        ("links", 60),
        ("reports", 5),
        ("sorts", 50),
        ("filters", 20),
        ("folds", 20),
        ("stops", 150),
        ("widths", 4 * pages),
        ("colours", 2 * pages),
    ] {
        assert!(tried(&said, what) >= least, "{what}: {said}");
    }
}
