//! The laboratory as a person types it.

use crate::common;

use std::path::Path;

use common::{Ran, pgclinic, text};

fn run_into(folder: &Path, more: &[&str]) -> Ran {
    let mut line = vec!["lab", "run", "duplicate-inserts", "--scale", "smallest"];
    line.extend([
        "--only",
        "collides=primary",
        "--only",
        "created-first=primary",
    ]);
    line.extend(["--into", text(folder), "--quiet"]);
    line.extend(more);
    pgclinic(&line)
}

#[test]
fn the_list_names_the_questions_and_the_plan_their_price() {
    let list = pgclinic(&["lab", "list"]).exits(0).out;
    assert!(
        list.contains("What do failed inserts leave behind?"),
        "{list}"
    );
    let plan = pgclinic(&["lab", "plan", "duplicate-inserts", "--minutes", "3"])
        .exits(0)
        .out;
    assert!(
        plan.contains("of disk") && plan.contains("Left out"),
        "{plan}"
    );
    let wrong = pgclinic(&["lab", "plan", "duplicate-insert"]).exits(2).err;
    assert!(wrong.contains("there is duplicate-inserts"), "{wrong}");
    let wrong = pgclinic(&["lab", "plan", "duplicate-inserts", "--minutes", "0.01"])
        .exits(2)
        .err;
    assert!(wrong.contains("allow more with --minutes"), "{wrong}");
}

#[test]
fn more_blocks_than_anybody_runs_are_refused_at_once() {
    let plan = |more: &[&str]| {
        let line = ["lab", "plan", "uuid-keys", "--blocks", "4000000000"];
        pgclinic(&[&line[..], more].concat()).exits(2).err
    };
    for why in [
        plan(&[]),
        plan(&["--minutes", "5"]),
        plan(&["--disk", "1GB"]),
    ] {
        let words: Vec<&str> = why.split_whitespace().collect();
        let told = words.join(" ");
        assert!(told.contains("a plan has 100000 at most"), "{why}");
    }
}

const TWO_ARMS: [&str; 4] = ["--arm", "insert,do-nothing", "--pg", "15"];

#[test]
fn a_folder_is_filled_once_and_keeps_to_its_plan() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("run");
    let ran = run_into(&folder, &TWO_ARMS).exits(0);
    assert!(ran.out.contains("3 of 3 runs done"), "{}", ran.out);
    let decision = "BETTER  choose do-nothing instead of insert: dead bytes";
    assert!(ran.out.starts_with(decision), "{}", ran.out);
    let result = folder
        .join("runs/b01-insert-collides_primary-created-first_primary-autovacuum_off/run.json");
    let written = std::fs::metadata(&result)
        .and_then(|found| found.modified())
        .expect("a result");

    // A result that was lost is made again, the others are not.
    let lost =
        folder.join("runs/b01-do-nothing-collides_primary-created-first_primary-autovacuum_off");
    std::fs::remove_dir_all(&lost).expect("a run's directory");
    goes_on_with_the_servers_it_was_begun_with(&folder);
    let again = std::fs::read_to_string(lost.join("run.json")).expect("a result");
    assert!(again.contains("\"server_version\": \"15."), "{again}");
    let now = std::fs::metadata(&result)
        .and_then(|found| found.modified())
        .expect("a result");
    assert_eq!(now, written);

    a_page_and_a_comparison(home.path(), &folder);
    let other = run_into(&folder, &["--seed", "2"]).exits(2);
    assert!(other.err.contains("holds the plan"), "{}", other.err);
}

#[test]
fn nothing_is_written_into_a_cluster_or_a_folder_of_other_things() {
    let (home, full) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    std::fs::write(home.path().join("PG_VERSION"), "15\n").expect("a file");
    let inside = run_into(&home.path().join("lab"), &[]).exits(2);
    assert!(
        inside.err.contains("is the data directory of a cluster"),
        "{}",
        inside.err
    );
    let data = run_into(
        &full.path().join("lab"),
        &["--data-folder", text(home.path())],
    )
    .exits(2);
    assert!(
        data.err.contains("is the data directory of a cluster"),
        "{}",
        data.err
    );
    assert!(
        !full.path().join("lab").exists(),
        "a refused plan leaves no directory"
    );

    std::fs::write(full.path().join("letters.txt"), "").expect("a file");
    let refused = run_into(full.path(), &[]).exits(2);
    assert!(
        refused.err.contains("is not empty and holds no experiment"),
        "{}",
        refused.err
    );
}

/// Another server is refused; without a word it is the same one, and the command that runs it again
/// names it.
fn goes_on_with_the_servers_it_was_begun_with(folder: &Path) {
    let folder = text(folder);
    let other = pgclinic(&["lab", "resume", folder, "--pg", "18"]).exits(2);
    let words = "was begun with --pg 15, and now it is --pg 18: runs on both would be mixed";
    assert!(other.err.contains(words), "{}", other.err);
    let given = pgclinic(&["lab", "resume", folder, "--server", "/opt/other"]).exits(2);
    let words = "was begun without --server, and now it is --server /opt/other";
    assert!(given.err.contains(words), "{}", given.err);
    let resumed = pgclinic(&["lab", "resume", folder, "--quiet"]).exits(0);
    assert!(
        resumed.out.trim_end().ends_with("--pg 15"),
        "{}",
        resumed.out
    );
}

/// What can be made of a folder: its page, a comparison with another one, and both as one.
fn a_page_and_a_comparison(home: &Path, folder: &Path) {
    let page = std::fs::read_to_string(folder.join("report.html")).expect("a page beside the runs");
    assert!(page.contains("<h1>BETTER</h1>") && page.contains("href=\"runs/b01-insert-"));
    let folder = text(folder);
    let report = pgclinic(&["lab", "report", folder, "--format", "json"]).exits(0);
    assert!(
        report.out.contains("\"schema\": \"pgclinic.lab/1\""),
        "{}",
        report.out
    );
    let second = home.join("run-2");
    run_into(&second, &TWO_ARMS).exits(0);
    against_each_other(home, folder, text(&second));
    two_folders_of_one_plan_as_one(home, folder, text(&second));
}

/// The same folder twice is no comparison; two runs of one plan are one.
fn against_each_other(home: &Path, folder: &str, second: &str) {
    let itself = pgclinic(&["lab", "compare", folder, folder]).exits(2);
    assert!(itself.err.contains("hold the same run"), "{}", itself.err);
    let page = home.join("compared.html");
    let line = ["lab", "compare", folder, second, "--allow", "machine"];
    let html = ["--format", "html", "--output", text(&page)];
    pgclinic(&[&line[..], &html[..]].concat()).exits(0);
    let page = std::fs::read_to_string(page).expect("a page");
    for link in [
        "href=\"run/runs/b01-insert-",
        "href=\"run-2/runs/b01-insert-",
    ] {
        assert!(page.contains(link), "links lead into the directories");
    }
}

/// The same folder twice is none more; another one of the same plan is.
fn two_folders_of_one_plan_as_one(home: &Path, folder: &str, second: &str) {
    let into = home.join("merged");
    let merge = |other: &str| {
        let into = ["--into", text(&into), "--quiet"];
        pgclinic(&[&["lab", "merge", folder, other], &into[..]].concat())
    };
    let twice = merge(folder).exits(2);
    assert!(twice.err.contains("hold the same run"), "{}", twice.err);
    assert!(!into.exists(), "nothing is copied");
    let merged = merge(second);
    assert!(merged.exits(0).out.contains("6 of 6 runs done"));
    let copied = "machines/run-2/runs/b01-insert-collides_primary-created-first_primary-autovacuum_off/run.json";
    assert!(into.join(copied).exists());
}

#[test]
fn a_new_experiment_can_be_planned_and_a_slip_in_it_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("mine.toml");
    pgclinic(&["lab", "new", text(&file)]).exits(0);
    pgclinic(&["lab", "new", text(&file)]).exits(2);
    let plan = pgclinic(&["lab", "plan", text(&file)]).exits(0).out;
    assert!(
        plan.contains("Does a covering index pay for its size?"),
        "{plan}"
    );
    let text_of_it = std::fs::read_to_string(&file).expect("the file");
    let slip = text_of_it.replace("[[metric]]", "[[metrics]]");
    std::fs::write(&file, slip).expect("the file");
    let wrong = pgclinic(&["lab", "plan", text(&file)]).exits(2).err;
    assert!(
        wrong.contains("mine.toml") && wrong.contains("metrics"),
        "{wrong}"
    );
}

#[test]
fn a_rate_that_no_server_keeps_is_refused_before_anybody_connects() {
    let home = tempfile::tempdir().expect("a directory");
    let script = home.path().join("one.sql");
    std::fs::write(&script, "SELECT 1;\n").expect("a file");
    // Nobody listens there: whoever connected would say so.
    let url = "postgres:///nowhere?host=/nonexistent";
    for rate in [
        "--rate=0",
        "--rate=-5",
        "--rate=nan",
        "--rate=inf",
        "--rate=1e12",
    ] {
        let why = pgclinic(&["lab", "load", text(&script), "--url", url, rate])
            .exits(2)
            .err;
        assert!(why.contains("is not a rate of rounds a second"), "{why}");
    }
}

/// An own experiment with an arm that can be run and some that cannot.
const BROKEN_ARMS: &str = r#"
name = "broken"
question = "What of this can be run?"
blocks = 1
[[arm]]
name = "good"
[[arm]]
name = "no-start"
settings = { shared_buffers = "many" }
[[arm]]
name = "no-such-release"
version = "12"
[[arm]]
name = "never-released"
version = "15.99"
[run]
sql = "SELECT 1"
[[metric]]
name = "run_s"
"#;

#[test]
fn what_cannot_be_run_is_told_with_its_reason() {
    let home = tempfile::tempdir().expect("a directory");
    let (file, folder) = (home.path().join("broken.toml"), home.path().join("run"));
    std::fs::write(&file, BROKEN_ARMS).expect("a file");
    let plan = pgclinic(&["lab", "plan", text(&file), "--json"]).exits(0);
    let plan: serde_json::Value = serde_json::from_str(&plan.out).expect("JSON");
    let skipped = plan["skipped"].as_array().expect("a list");
    for release in ["no-such-release", "never-released"] {
        let names = |skip: &&serde_json::Value| skip["what"].to_string().contains(release);
        let skip = skipped.iter().find(names);
        let why = skip.and_then(|skip| skip["why"].as_str());
        assert!(why.is_some_and(|why| !why.is_empty()), "{skipped:?}");
    }
    let ran = pgclinic(&[
        "lab",
        "run",
        text(&file),
        "--into",
        text(&folder),
        "--quiet",
    ])
    .exits(3);
    assert!(
        ran.out.contains("2 of 5 runs done, 1 failed, 2 skipped"),
        "{}",
        ran.out
    );
    let log = std::fs::read_to_string(folder.join("runs/b01-no-start/server.log")).expect("a log");
    for words in [&ran.out, &log] {
        assert!(
            words.contains("shared_buffers"),
            "the server's own words: {words}"
        );
    }
    assert!(ran.out.contains("PostgreSQL 12"), "{}", ran.out);
    let never = "PostgreSQL 15.99 is not here and could not be fetched";
    assert!(ran.out.contains(never), "{}", ran.out);

    let load = "[load]\nscript = \"\"\"\n\\\\sot x 1\nSELECT 1;\n\"\"\"\n";
    let with_load = BROKEN_ARMS.replace("[run]\nsql = \"SELECT 1\"\n", load);
    let slip = with_load.replace("run_s", "tps");
    std::fs::write(&file, slip).expect("a file");
    let wrong = pgclinic(&["lab", "plan", text(&file)]).exits(2).err;
    assert!(
        wrong.contains("the script of [load] is wrong at"),
        "{wrong}"
    );
}
