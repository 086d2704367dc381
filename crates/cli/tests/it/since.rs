//! `check --since STATE`: changed pages are looked at, others are passed over and said to be, and a
//! state that cannot tell is refused.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Ran, hold_ledger, pgclinic, text, told};
use pgclinic_servers::{Checksums, Scratch, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, scratch, seed};

const PAGE: u64 = 8192;

fn newest_copy() -> TempCopy {
    let installation = all_majors().pop().expect("the newest");
    copy_of(&seed(&installation, Checksums::On))
}

/// Runs statements on a server that is started for them and stopped.
fn on_a_server(copy: &TempCopy, statements: &[&str]) -> Vec<String> {
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let answers = statements.iter().map(|sql| {
        let answer = session.query_value(sql).expect(sql);
        answer.unwrap_or_default()
    });
    let answers = answers.collect();
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    answers
}

/// One copy's files, in the folder in which those of the other were.
fn take_the_place(one: &TempCopy, other: &TempCopy) {
    std::fs::rename(&other.pgdata, other.pgdata.with_extension("before")).expect("moved away");
    std::fs::rename(&one.pgdata, &other.pgdata).expect("moved");
}

fn hurt(copy: &TempCopy, path: &str, block: u64) {
    let mut options = std::fs::File::options();
    options.write(true);
    let file = options.open(copy.pgdata.join(path)).expect("a file");
    file.write_all_at(&[7; 64], block * PAGE + 6000)
        .expect("hurt");
}

struct Folder(Scratch);

impl Folder {
    fn new() -> Self {
        Folder(scratch())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A whole run that writes its state.
fn keep(copy: &TempCopy, state: &Path, level: &str) {
    let words = ["check", text(&copy.pgdata), "--level", level];
    pgclinic(&[&words[..], &["--state", text(state)]].concat()).exits(0);
}

fn since(copy: &TempCopy, state: &Path, more: &[&str]) -> Ran {
    let words = ["check", text(&copy.pgdata), "--since", text(state)];
    pgclinic(&[&words[..], more].concat())
}

fn document(copy: &TempCopy, state: &Path, exit: u8) -> CheckDocument {
    let ran = since(copy, state, &["--format", "json"]);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{}", told(&document));
    hold_ledger(&document);
    document
}

fn damaged(document: &CheckDocument) -> Vec<(&str, Option<u32>)> {
    let damage = document.findings.iter();
    let damage = damage.filter(|finding| finding.severity == Severity::Damage);
    damage
        .map(|finding| (&*finding.place.path, finding.place.block))
        .collect()
}

#[test]
fn changed_pages_are_looked_at_and_others_are_passed_over() {
    let (copy, folder) = (newest_copy(), Folder::new());
    let state = folder.file("first");
    keep(&copy, &state, "full");
    let answers = on_a_server(
        &copy,
        &[
            "SELECT min((ctid::text::point)[0])::int FROM public.docs",
            "UPDATE public.docs SET title = title",
            "SELECT pg_relation_filepath('public.docs')",
            "SELECT pg_relation_filepath('public.frozen')",
        ],
    );
    let healthy = document(&copy, &state, 0);
    let coverage = &healthy.coverage;
    assert!(
        coverage.pages_unchanged > coverage.pages,
        "{} of {} pages",
        coverage.pages_unchanged,
        coverage.pages
    );
    let words = since(&copy, &state, &[]).exits(0);
    assert!(words.first_line().contains("that changed"), "{}", words.out);
    assert!(
        words.out.contains("have not changed since"),
        "{}",
        words.out
    );
    // What did not change is not read for damage; what did is.
    let [block, _, changed, unchanged] = &*answers else {
        panic!("four answers")
    };
    let block: u32 = block.parse().expect("a block");
    hurt(&copy, unchanged, 1);
    document(&copy, &state, 0);
    hurt(&copy, changed, block.into());
    let found = document(&copy, &state, 1);
    assert!(!damaged(&found).is_empty());
    let expected = (&**changed, Some(block));
    assert!(
        damaged(&found).iter().all(|place| *place == expected),
        "{}",
        told(&found)
    );
}

/// The copied files carry the old positions of their template.
#[test]
fn a_database_that_was_copied_without_wal_is_looked_at_whole() {
    let (copy, folder) = (newest_copy(), Folder::new());
    let state = folder.file("first");
    keep(&copy, &state, "structure");
    let sql = "CREATE DATABASE late TEMPLATE template0 STRATEGY file_copy";
    let oid = "SELECT oid FROM pg_database WHERE datname = 'late'";
    let answers = on_a_server(&copy, &[sql, oid]);
    // pg_proc of template0.
    let path = format!("base/{}/1255", answers[1]);
    hurt(&copy, &path, 2);
    let found = document(&copy, &state, 1);
    assert!(
        damaged(&found).contains(&(&*path, Some(2))),
        "{}",
        told(&found)
    );
}

#[test]
fn a_state_that_cannot_tell_is_refused() {
    let (copy, folder) = (newest_copy(), Folder::new());
    let state = folder.file("first");
    keep(&copy, &state, "pages");
    let deeper = since(&copy, &state, &["--level", "structure"]).exits(2);
    assert!(deeper.err.contains("level pages"), "{}", deeper.err);
    since(&copy, &state, &["--level", "pages"]).exits(0);
    let narrower = ["--level", "pages", "--relation", "public.docs"];
    let narrower = since(&copy, &state, &narrower).exits(2);
    assert!(narrower.err.contains("selection"), "{}", narrower.err);

    let oldest = all_majors().into_iter().next().expect("13");
    let other = copy_of(&seed(&oldest, Checksums::On));
    let other = since(&other, &state, &["--level", "pages"]).exits(2);
    assert!(
        other.err.contains("the state is of the cluster"),
        "{}",
        other.err
    );

    // A backup from before the state was put back.
    let older = newest_copy();
    on_a_server(&copy, &["UPDATE public.docs SET id = id", "CHECKPOINT"]);
    let later = folder.file("later");
    keep(&copy, &later, "pages");
    take_the_place(&older, &copy);
    let back = since(&copy, &later, &["--level", "pages"]).exits(2);
    assert!(back.err.contains("set back"), "{}", back.err);

    let no_state = folder.file("none");
    std::fs::write(&no_state, "{}").expect("a file");
    let none = since(&copy, &no_state, &["--level", "pages"]).exits(2);
    assert!(none.err.contains("no state of a run"), "{}", none.err);
    assert!(
        since(&copy, &folder.file("nowhere"), &[])
            .exits(2)
            .err
            .contains("nowhere")
    );
}

/// Beside a server the state counts from the last checkpoint: what was in memory only is looked at
/// by the next run.
#[test]
fn a_run_beside_a_server_leaves_a_state_too() {
    let (copy, folder) = (newest_copy(), Folder::new());
    let state = folder.file("first");
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT min((ctid::text::point)[0])::int FROM public.docs";
    let block = session.query_value(sql).expect(sql).expect("a block");
    let block: u32 = block.parse().expect("a number");
    session
        .execute("UPDATE public.docs SET title = title")
        .expect("changed");
    let sql = "SELECT pg_relation_filepath('public.docs')";
    let path = session.query_value(sql).expect(sql).expect("a path");
    keep(&copy, &state, "structure");
    session.execute("CHECKPOINT").expect("written");
    let healthy = document(&copy, &state, 0);
    assert!(healthy.coverage.pages_unchanged > 0);
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    hurt(&copy, &path, block.into());
    let found = document(&copy, &state, 1);
    assert!(
        damaged(&found).contains(&(&*path, Some(block))),
        "{}",
        told(&found)
    );
}

/// Damage of a copy is its own, and so is a look at it: neither verb takes a clean copy's state for
/// the other.
#[test]
fn a_state_of_another_copy_is_refused() {
    let (clean, damaged, folder) = (newest_copy(), newest_copy(), Folder::new());
    let state = folder.file("clean");
    keep(&clean, &state, "structure");
    hurt(&damaged, "base/1/1255", 2);
    let refused = since(&damaged, &state, &[]).exits(2);
    let spec = damaged.pgdata.canonicalize().expect("a path");
    assert!(refused.err.contains(text(&spec)), "{}", refused.err);
    assert!(
        refused.err.contains("Run once without --since"),
        "{}",
        refused.err
    );

    let bytes = std::fs::read(&state).expect("a state");
    let mut begun: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    begun["complete"] = false.into();
    std::fs::write(&state, begun.to_string()).expect("a state");
    let words = ["check", text(&damaged.pgdata), "--resume"];
    let refused = pgclinic(&[&words[..], &["--state", text(&state)]].concat()).exits(2);
    assert!(
        refused.err.contains("the state is of the files in"),
        "{}",
        refused.err
    );

    // The same folder by another path is the same copy.
    let link = folder.file("link");
    std::os::unix::fs::symlink(&clean.pgdata, &link).expect("a link");
    keep(&clean, &folder.file("again"), "structure");
    let again = folder.file("again");
    pgclinic(&["check", text(&link), "--since", text(&again)]).exits(0);
}

/// The number and the checkpoint of both are the same, and so is the path.
#[test]
fn another_copy_that_was_put_in_the_place_of_the_files_is_looked_at_whole() {
    let (clean, damaged, folder) = (newest_copy(), newest_copy(), Folder::new());
    let state = folder.file("clean");
    keep(&clean, &state, "structure");
    // A folder that is moved away and back is the same.
    let away = clean.pgdata.with_extension("away");
    std::fs::rename(&clean.pgdata, &away).expect("moved");
    std::fs::rename(&away, &clean.pgdata).expect("moved back");
    assert!(document(&clean, &state, 0).since.is_some());

    hurt(&damaged, "base/1/1255", 2);
    take_the_place(&damaged, &clean);
    let ran = since(&clean, &state, &["--format", "json"]).exits(1);
    assert!(ran.err.contains("what changed since"), "{}", ran.err);
    let found = ran.document();
    hold_ledger(&found);
    assert!(found.since.is_none() && found.coverage.pages_unchanged == 0);
    let place = ("base/1/1255", Some(2));
    assert!(self::damaged(&found).contains(&place), "{}", told(&found));
    let mut gaps = found.coverage.not_checked.iter();
    let own = gaps.find(|gap| gap.what.starts_with("what changed since"));
    let own = own.expect("a note");
    assert!(
        own.inherent && own.why.contains("pg_control"),
        "{}",
        own.why
    );

    // What is done of the one is not done of the other.
    let bytes = std::fs::read(&state).expect("a state");
    let mut begun: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    begun["complete"] = false.into();
    std::fs::write(&state, begun.to_string()).expect("a state");
    let words = ["check", text(&clean.pgdata), "--resume"];
    let refused = pgclinic(&[&words[..], &["--state", text(&state)]].concat()).exits(2);
    let why = "the state is of other files at the same place";
    assert!(refused.err.contains(why), "{}", refused.err);
}

/// Nobody writes to an archive: one that was written is another.
#[test]
fn an_archive_that_was_exchanged_is_looked_at_whole() {
    let (copy, folder) = (newest_copy(), Folder::new());
    let archive = folder.file("monday.tar");
    let mut tar = std::process::Command::new("tar");
    tar.arg("-C").arg(&copy.pgdata);
    let made = tar.arg("-cf").arg(&archive).arg(".").status();
    assert!(made.expect("tar").success());
    let check = |more: &[&str]| {
        let words = ["check", text(&archive), "--format", "json"];
        pgclinic(&[&words[..], more].concat())
    };
    let state = folder.file("first");
    let first = check(&["--state", text(&state)]);
    assert!(first.document().since.is_none());
    let same = check(&["--since", text(&state)]);
    assert!(same.document().since.is_some(), "{}", same.err);

    let bytes = std::fs::read(&archive).expect("an archive");
    std::fs::remove_file(&archive).expect("the first one");
    std::fs::write(&archive, bytes).expect("another one");
    let other = check(&["--since", text(&state)]);
    assert!(other.document().since.is_none());
    assert!(
        other.err.contains("monday.tar is not what it was"),
        "{}",
        other.err
    );
}
