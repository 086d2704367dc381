//! A server at work that cannot be seen from here, as one in a container: the data directory is
//! looked at through a folder of links, whose `postmaster.pid` names a process that is none of
//! ours. (The server itself ends when its own `postmaster.pid` names another.)

use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{count, hold_ledger, pgclinic, text, told};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{CHANGES, Load, busy, execute, started};

/// The number of a process that has ended.
fn nobody() -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    let number = child.id();
    child.wait().expect("it ends");
    number
}

/// The data directory as another pid namespace shows it.
fn seen_from_elsewhere(pgdata: &Path, folder: &Path) -> PathBuf {
    let view = folder.join("view");
    fs::create_dir(&view).expect("a directory");
    for entry in fs::read_dir(pgdata).expect("a directory") {
        let entry = entry.expect("an entry");
        symlink(entry.path(), view.join(entry.file_name())).expect("a link");
    }
    let own = view.join("postmaster.pid");
    let lines = fs::read_to_string(&own).expect("a server's file");
    let (_, rest) = lines.split_once('\n').expect("lines");
    fs::remove_file(&own).expect("a link");
    fs::write(&own, format!("{}\n{rest}", nobody())).expect("a file");
    view
}

const COMMITS: &str = "INSERT INTO public.ticks VALUES (1)";

#[track_caller]
fn check(view: &Path, more: &[&str], exit: u8) -> CheckDocument {
    let words = [&["check", text(view), "--format", "json"], more].concat();
    let ran = pgclinic(&words);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{more:?}: {}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document
}

/// Lines are broken where the terminal ends.
fn holds(said: &str, words: &str) -> bool {
    let squeezed: Vec<&str> = said.split_whitespace().collect();
    squeezed.join(" ").contains(words)
}

/// What the report says of the server that is not seen.
fn said_of_it(document: &CheckDocument) -> Option<&str> {
    let mut gaps = document.coverage.not_checked.iter();
    let own = gaps.find(|gap| gap.what == "which server is running on the files");
    own.map(|gap| gap.why.as_str())
}

fn healthy_under_load(major: u16) {
    let (copy, mut server) = started(major, Checksums::On, &busy());
    let folder = tempfile::tempdir().expect("a directory");
    let view = seen_from_elsewhere(&copy.pgdata, folder.path());
    execute(&server, "CREATE TABLE public.ticks (tick int)");
    let load = Load::start(&server, &[CHANGES, COMMITS]);
    for level in ["pages", "structure", "full"] {
        let document = check(&view, &["--level", level], 0);
        assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
        assert_eq!(
            count(&document, Severity::Warning),
            0,
            "{}",
            told(&document)
        );
        let state = document.target.state.as_deref().unwrap_or_default();
        assert!(state.starts_with("running"), "{state}");
        let why = said_of_it(&document).expect("said");
        assert!(why.contains("while the files were read"), "{why}");
    }
    assert!(load.stop() > 0);

    // A cluster that really crashed moves no more.
    server.kill();
    let crashed = check(&view, &["--level", "structure"], 3);
    assert!(crashed.needs_recovery);
    assert_eq!(said_of_it(&crashed), None, "{}", told(&crashed));
    assert_eq!(count(&crashed, Severity::Damage), 0, "{}", told(&crashed));
}

#[test]
fn a_server_of_13_that_cannot_be_seen_is_noticed_by_what_it_writes() {
    healthy_under_load(13);
}

#[test]
fn a_server_of_18_that_cannot_be_seen_is_noticed_by_what_it_writes() {
    healthy_under_load(18);
}

#[test]
fn the_other_verbs_notice_it_too() {
    let (copy, server) = started(15, Checksums::On, &busy());
    let folder = tempfile::tempdir().expect("a directory");
    let view = seen_from_elsewhere(&copy.pgdata, folder.path());
    execute(&server, "CREATE TABLE public.ticks (tick int)");
    let load = Load::start(&server, &[CHANGES, COMMITS]);
    let measured = pgclinic(&["measure", text(&view)]);
    assert!(matches!(measured.exit, 0 | 3), "{}", measured.err);
    assert!(
        measured.out.starts_with("MEASURED (running)"),
        "{}",
        measured.out
    );
    assert!(
        holds(&measured.out, "may be in a container"),
        "{}",
        measured.out
    );

    let compared = pgclinic(&["diff", text(&view), text(&copy.pgdata)]).exits(0);
    assert!(
        holds(&compared.out, "may be in a container"),
        "{}",
        compared.out
    );

    // Rows that are written cannot be taken back: the account says what to do.
    let account = salvaged(&view, &folder.path().join("unsure"), &[], 3);
    assert_eq!(account.outcome, Outcome::Incomplete);
    let mut reasons = account.not_salvaged.iter();
    assert!(reasons.any(|gap| gap.why.contains("with --running")));
    let account = salvaged(&view, &folder.path().join("sure"), &["--running"], 0);
    assert_eq!(account.source.as_deref(), Some("running"));
    assert!(load.stop() > 0);
}

#[track_caller]
fn salvaged(view: &Path, out: &Path, more: &[&str], exit: u8) -> SalvageReport {
    let words = ["salvage", text(view), "--to", text(out), "--no-sync"];
    let still = ["--relation", "public.frozen", "--database", "clinic"];
    pgclinic(&[&words[..], &still[..], more].concat()).exits(exit);
    let account = fs::read(out.join("salvage.json")).expect("an account");
    serde_json::from_slice(&account).expect("a document")
}

/// An idle server moves nothing: a person can say that it is there.
#[test]
fn a_person_says_that_a_server_is_at_work() {
    let (copy, server) = started(18, Checksums::On, &busy());
    let folder = tempfile::tempdir().expect("a directory");
    let view = seen_from_elsewhere(&copy.pgdata, folder.path());
    let document = check(&view, &["--running"], 0);
    let why = said_of_it(&document).expect("said");
    assert!(why.contains("--running"), "{why}");
    // Where it can be seen nothing needs to be said.
    let document = check(&copy.pgdata, &["--running"], 0);
    assert_eq!(said_of_it(&document), None);

    let block = ["--relation", "public.docs", "--database", "clinic"];
    let inspect = ["inspect", text(&view), "--running"];
    pgclinic(&[&inspect[..], &block[..]].concat()).exits(0);
    let measured = pgclinic(&["measure", text(&view), "--running"]).exits(0);
    assert!(holds(&measured.out, "--running says"), "{}", measured.out);
    let both = [
        "diff",
        text(&view),
        text(&view),
        "--running-a",
        "--running-b",
    ];
    let compared = pgclinic(&both).exits(0);
    assert!(holds(&compared.out, "--running says"), "{}", compared.out);

    let file = copy.pgdata.join("base/1/1259");
    let refused = pgclinic(&["check", text(&file), "--running"]).exits(2);
    assert!(
        refused.err.contains("not for one relation file"),
        "{}",
        refused.err
    );
    drop(server);
}
