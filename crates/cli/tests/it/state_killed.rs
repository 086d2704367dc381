//! `check --state FILE` is killed in the middle and goes on with `--resume`: it says what an
//! undisturbed run says.

use pgclinic_model::{CheckDocument, Severity};

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{count, hold_ledger, pgclinic, text, told};
use pgclinic_servers::{Checksums, Scratch, Server, StartOptions, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, scratch, seed};
use serde_json::Value;

const PAGE: u64 = 8192;
/// A catalog of the database 1, which is done when the run is killed.
const DONE: &str = "base/1/1255";

fn hurt(copy: &TempCopy, path: &str, block: u64) {
    let mut options = std::fs::File::options();
    let file = options.write(true).open(copy.pgdata.join(path));
    let file = file.expect("a file");
    file.write_all_at(&[7; 64], block * PAGE + 6000)
        .expect("hurt");
}

/// Without records of a server that has nothing to do.
fn start(copy: &TempCopy) -> Server {
    let options = StartOptions::default().with("wal_level", "minimal");
    copy.start_with(&options).expect("a server")
}

fn newest() -> TempCopy {
    let installation = all_majors().pop().expect("the newest");
    copy_of(&seed(&installation, Checksums::On))
}

/// A copy of which a table is damaged.
fn damaged() -> TempCopy {
    let copy = newest();
    let mut server = start(&copy);
    let mut session = server.connect("clinic").expect("a session");
    let sql = "SELECT pg_relation_filepath('public.frozen')";
    let path = session.query_value(sql).expect(sql).expect("a path");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    hurt(&copy, &path, 1);
    copy
}

fn check<'a>(copy: &'a TempCopy, level: &'a str) -> Vec<&'a str> {
    let pgdata = text(&copy.pgdata);
    vec!["check", pgdata, "--level", level, "--format", "json"]
}

/// A whole run, slow enough that it is killed when its state says that the database 1 is done.
fn run_and_kill(words: &[&str], state: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    command.args(words).args(["--rate", "5MB/s"]);
    command.arg("--state").arg(state);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program");
    loop {
        let kept = std::fs::read(state).unwrap_or_default();
        let kept: Value = serde_json::from_slice(&kept).unwrap_or_default();
        if kept["databases"]["1"]["complete"] == true {
            assert_eq!(kept["complete"], false, "there is something left to do");
            break;
        }
        let ended = child.try_wait().expect("an examination it");
        assert_eq!(ended, None, "the run ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
}

#[track_caller]
fn document(words: &[&str], exit: u8) -> CheckDocument {
    let ran = pgclinic(words);
    let mut document = ran.document();
    assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document.elapsed_s = 0.0;
    let entries = &mut document.coverage.not_checked;
    entries.sort_by(|a, b| (&a.what, &a.why).cmp(&(&b.what, &b.why)));
    document
}

/// Kills a run, and goes on with it; gives where its state is.
fn killed_it_goes_on(copy: &TempCopy, folder: &Scratch, level: &str) -> PathBuf {
    let words = check(copy, level);
    let undisturbed = document(&words, 1);
    let damage = count(&undisturbed, Severity::Damage);
    assert!(damage > 0, "{}", told(&undisturbed));
    let state = folder.path().join("state");
    run_and_kill(&words, &state);
    // What is done is not done again.
    hurt(copy, DONE, 2);
    let going_on = [&words[..], &["--state", text(&state), "--resume"]].concat();
    assert_eq!(document(&going_on, 1), undisturbed);
    let anew = document(&words, 1);
    assert!(count(&anew, Severity::Damage) > damage, "{}", told(&anew));
    let ended = pgclinic(&going_on).exits(2);
    assert!(ended.err.contains("nothing is left to do"), "{}", ended.err);
    state
}

#[test]
fn a_run_over_a_stopped_cluster_survives_a_kill() {
    let (copy, folder) = (damaged(), scratch());
    killed_it_goes_on(&copy, &folder, "full");
}

/// Of a database that may have been begun.
#[test]
fn files_that_went_between_a_kill_and_the_going_on_are_missed() {
    let (copy, folder) = (newest(), scratch());
    let words = check(&copy, "structure");
    let state = folder.path().join("state");
    run_and_kill(&words, &state);
    for gone in ["base/4/1255", "base/4/2600"] {
        std::fs::remove_file(copy.pgdata.join(gone)).expect("removed");
    }
    let going_on = [&words[..], &["--state", text(&state), "--resume"]].concat();
    let document = document(&going_on, 1);
    let missing = document.findings.iter();
    let missing = missing.filter(|own| own.rule == "missing-file").count();
    assert_eq!(missing, 2, "{}", told(&document));
    assert_eq!(document.coverage.relations_missing, 2);
}

#[test]
fn a_run_beside_a_server_survives_a_kill() {
    let (copy, folder) = (damaged(), scratch());
    let server = start(&copy);
    let state = killed_it_goes_on(&copy, &folder, "structure");
    // The state of a run that was gone on with tells what changed, as any other.
    let since = [&check(&copy, "structure")[..], &["--since", text(&state)]].concat();
    let changed = document(&since, 1);
    assert!(changed.coverage.pages_unchanged > changed.coverage.pages);
    drop(server);
}

/// Tables that were changed, made, cut and dropped between the kill and the going on.
#[test]
fn what_a_server_did_in_between_is_followed() {
    let (copy, folder) = (newest(), scratch());
    let server = start(&copy);
    let (words, state) = (check(&copy, "structure"), folder.path().join("state"));
    run_and_kill(&words, &state);
    let mut session = server.connect("clinic").expect("a session");
    for sql in [
        "CREATE TABLE public.late AS SELECT i FROM generate_series(1, 5000) AS i",
        "VACUUM FULL public.docs",
        "TRUNCATE public.measurements",
        "DROP TABLE public.chains CASCADE",
        "CREATE DATABASE later TEMPLATE template0",
        "CHECKPOINT",
    ] {
        session.execute(sql).expect(sql);
    }
    let sql = "SELECT pg_relation_filepath('public.late')";
    let late = session.query_value(sql).expect(sql).expect("a path");
    hurt(&copy, &late, 3);
    let going_on = [&words[..], &["--state", text(&state), "--resume"]].concat();
    let found = document(&going_on, 1);
    let place = &found.findings.first().expect("damage").place;
    assert_eq!((place.path.as_str(), place.block), (late.as_str(), Some(3)));
    assert_eq!(found.relations.len(), 1, "{}", told(&found));
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let (copy, folder) = (newest(), scratch());
    let (words, state) = (check(&copy, "pages"), folder.path().join("state"));
    run_and_kill(&words, &state);
    let going_on = ["--state", text(&state), "--resume"];
    let refused = |words: &[&str], why: &str| {
        let ran = pgclinic(&[words, &going_on].concat()).exits(2);
        assert!(ran.err.contains(why), "{}", ran.err);
    };
    refused(&check(&copy, "structure"), "level pages");
    let oldest = all_majors().into_iter().next().expect("13");
    let other = copy_of(&seed(&oldest, Checksums::On));
    let _other_server = start(&other);
    refused(&check(&other, "pages"), "the state is of the cluster");
    let _server = start(&copy);
    refused(&words, "a server is running on it now");
}
