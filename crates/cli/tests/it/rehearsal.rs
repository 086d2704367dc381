//! Random damage, and a rehearsal on a copy of a user's own cluster: scored, or hidden and marked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common;

use common::{pgclinic, text};
use pgclinic_model::document::{InjuryState, RehearsalDocument, RehearsalKind};
use pgclinic_servers::{Checksums, Scratch, Server, StartOptions, StopMode};
use pgclinic_testkit::{
    TempCopy, as_primary, base_backup, copy_of, execute, run_as, scratch, seed, server,
};

/// Every file with what it holds.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            found.insert(path, bytes);
        }
    }
    found
}

fn rehearsal(json: &str) -> RehearsalDocument {
    serde_json::from_str(json).expect("a rehearsal")
}

#[test]
fn random_injuries_are_shown_made_and_taken_back() {
    let seeded = seed(&server(18), Checksums::On);
    let original = text(&seeded.pgdata);
    let scratch = tempfile::tempdir().expect("a directory");
    let copy = scratch.path().join("copy");
    let random = [
        "--random",
        "2%",
        "--lost-segments",
        "3",
        "--database",
        "clinic",
    ];
    let plan = |seed: &str| {
        let words = [&["injure", original, "--plan", "--seed", seed][..], &random].concat();
        pgclinic(&words).exits(0).out
    };
    let shown = plan("7");
    assert!(shown.starts_with("seed 7: "), "{shown}");
    assert_eq!(shown.matches("lost-segment: ").count(), 3, "{shown}");
    assert_eq!(shown, plan("7"));
    assert_ne!(shown, plan("8"));

    let words = ["injure", original, "--copy-to", text(&copy), "--seed", "7"];
    let made = pgclinic(&[&words[..], &random].concat()).exits(0).out;
    assert!(made.starts_with(&shown), "{made}");
    pgclinic(&["check", text(&copy)]).exits(1);
    let undo = made.lines().last().expect("a line");
    let journal = undo.strip_prefix("undo: pgclinic injure --undo ");
    pgclinic(&["injure", "--undo", journal.expect("a journal")]).exits(0);
    pgclinic(&["check", text(&copy)]).exits(0);
}

#[test]
fn several_injuries_are_made_together() {
    let seeded = seed(&server(18), Checksums::On);
    let words = [
        "injure",
        text(&seeded.pgdata),
        "--plan",
        "--relation",
        "public.docs",
    ];
    let two = [
        "--injury",
        "header-random",
        "--injury",
        "chunk-header-random",
    ];
    let shown = pgclinic(&[&words[..], &two].concat()).exits(0).out;
    assert!(shown.starts_with("seed 1: 2 injuries\n"), "{shown}");
    assert!(shown.contains("pg_toast."), "{shown}");
}

#[test]
fn a_budget_that_makes_no_sense_is_refused() {
    let seeded = seed(&server(18), Checksums::On);
    let injure = |more: &[&str]| {
        let words = ["injure", text(&seeded.pgdata), "--plan"];
        pgclinic(&[&words[..], more].concat()).exits(2).err
    };
    let said = injure(&["--lost-segments", "100000"]);
    assert!(said.contains("100000 segments are to be lost"), "{said}");
    let said = injure(&["--random", "3", "--injury", "lost-file"]);
    assert!(
        said.contains("lost-file hurts more than one page"),
        "{said}"
    );
}

#[test]
fn a_copy_of_a_users_cluster_is_hurt_and_scored_and_the_original_is_only_read() {
    let original = copy_of(&seed(&server(18), Checksums::On));
    let before = contents(&original.pgdata);
    let scratch = tempfile::tempdir().expect("a directory");
    let report = scratch.path().join("report.html");
    let drill = |more: &[&str]| {
        let words = [
            "drill",
            "--on-copy-of",
            text(&original.pgdata),
            "--random",
            "12",
        ];
        let places = ["--scratch", text(scratch.path()), "--report", text(&report)];
        pgclinic(&[&words[..], &places, more].concat())
    };
    let ran = drill(&["--seed", "3", "--lost-segments", "1", "--format", "json"]);
    let document = rehearsal(&ran.out);
    assert_eq!(document.kind, RehearsalKind::Drill);
    assert_eq!(document.injuries.len(), 13);
    let score = &document.score;
    assert_eq!(score.false_alarms, 0, "{:#?}", document.false_alarms);
    assert_eq!(score.detected + score.blind, score.injuries, "{}", ran.out);
    assert!(score.explained > 6 && score.explained <= score.detected);
    assert!(score.rows_saved < score.rows && score.rows_saved > 0);
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert!(ran.err.contains("MiB free"), "{}", ran.err);
    let asked = document.server.as_ref().expect("what the server says");
    assert_eq!(asked.version, Some(server(18).version));
    assert!(asked.answer.started, "{asked:?}");
    let mut messages = asked.answer.messages.iter();
    assert!(
        messages.any(|own| own.contains("invalid page in block")),
        "{asked:?}"
    );
    assert!(before == contents(&original.pgdata), "it was only read");

    let earlier = scratch.path().join("earlier.json");
    std::fs::write(&earlier, &ran.out).expect("a file");
    let page = std::fs::read_to_string(&report).expect("a report");
    assert!(page.contains("Rehearsal") && page.contains("lost-segment"));
    let again = drill(&["--seed", "4", "--no-server", "--previous", text(&earlier)]);
    assert!(again.out.contains("(before: "), "{}", again.out);
    let silent = "no server was asked: --no-server";
    assert!(again.out.contains(silent), "{}", again.out);
    let left = std::fs::read_dir(scratch.path()).expect("a directory");
    assert_eq!(left.count(), 2, "the copies are gone");
}

#[test]
fn a_backup_in_archives_is_copied_out_of_them() {
    let original = copy_of(&seed(&server(15), Checksums::On));
    let scratch = scratch();
    let mut running = original.start_with(&as_primary()).expect("a server");
    let backup = scratch.path().join("backup");
    let packed = ["--format=tar", "--compress=gzip:1", "--no-verify-checksums"];
    base_backup(&running, &backup, &packed);
    let (place, report) = (scratch.path().join("copies"), scratch.path().join("r.html"));
    let drill = |target: &Path| {
        let words = [
            "drill",
            "--on-copy-of",
            text(target),
            "--database",
            "clinic",
        ];
        let places = ["--scratch", text(&place), "--report", text(&report)];
        pgclinic(&[&words[..], &places, &["--format", "json"]].concat())
    };
    let refused = drill(&original.pgdata);
    assert_eq!(refused.exit, 2, "{}", refused.out);
    assert!(refused.err.contains("is running on"), "{}", refused.err);
    running.stop(StopMode::Fast).expect("a stop");
    let ran = drill(&backup);
    let document = rehearsal(&ran.out);
    assert_eq!(ran.exit, 0, "{}\n{}", ran.out, ran.err);
    assert_eq!(document.target.kind, "tar-backup");
    assert_eq!(document.injuries.len(), 20);
}

#[test]
fn an_exam_is_marked_by_what_became_of_its_injuries() {
    let original = copy_of(&seed(&server(18), Checksums::On));
    let scratch = tempfile::tempdir().expect("a directory");
    let (exam, report) = (scratch.path().join("exam"), scratch.path().join("r.html"));
    let words = [
        "drill",
        "--exam",
        text(&exam),
        "--on-copy-of",
        text(&original.pgdata),
    ];
    let more = ["--random", "6", "--lost-segments", "1", "--seed", "11"];
    let made = pgclinic(&[&words[..], &more].concat()).exits(0);
    assert!(made.out.contains("is damaged in 7 places"), "{}", made.out);
    let whole = format!("{}{}", made.out, made.err);
    for giveaway in ["base/", "public.", "lost-segment", "checksum"] {
        assert!(!whole.contains(giveaway), "{giveaway}: {whole}");
    }

    let twice = pgclinic(&[&words[..], &more].concat()).exits(2).err;
    assert!(twice.contains("is there already"), "{twice}");
    let mark = ["drill", "--exam", text(&exam), "--report", text(&report)];
    let json = [&mark[..], &["--format", "json"]].concat();
    let first = rehearsal(&pgclinic(&json).exits(1).out);
    assert_eq!(
        (first.kind, first.score.dealt_with),
        (RehearsalKind::Exam, Some(0))
    );
    let mut states = first.injuries.iter().map(|injury| injury.state);
    assert!(states.all(|state| state == Some(InjuryState::Untouched)));

    let key = scratch.path().join("exam.key/journal");
    pgclinic(&["injure", "--undo", text(&key)]).exits(0);
    let last = rehearsal(&pgclinic(&json).exits(0).out);
    assert_eq!(last.score.dealt_with, Some(7));
    assert_eq!(last.score.rows_saved, last.score.rows);
    let told = pgclinic(&mark).exits(0).out;
    assert!(told.contains("restored"), "{told}");
}

/// An exam on a copy of the seed where a server's user may have it.
struct Exam {
    original: TempCopy,
    scratch: Scratch,
}

impl Exam {
    fn made(major: u16, more: &[&str]) -> Self {
        let original = copy_of(&seed(&server(major), Checksums::On));
        let exam = Exam {
            original,
            scratch: scratch(),
        };
        let directory = exam.directory();
        let words = ["drill", "--exam", text(&directory), "--on-copy-of"];
        let target = [text(&exam.original.pgdata), "--database", "clinic"];
        pgclinic(&[&words[..], &target, more].concat()).exits(0);
        exam
    }

    fn directory(&self) -> PathBuf {
        self.scratch.path().join("exam")
    }

    /// What a user does with a server of the exam's copy.
    fn with_server(&self, major: u16, statements: &[&str], stop: StopMode) {
        let options = StartOptions::default();
        let started = Server::start(&server(major), &run_as(), &self.directory(), &options);
        let mut running = started.expect("a server");
        for statement in statements {
            execute(&running, statement);
        }
        running.stop(stop).expect("a stop");
    }

    fn marked(&self, exit: u8) -> RehearsalDocument {
        let (directory, report) = (self.directory(), self.scratch.path().join("r.html"));
        let words = [
            "drill",
            "--exam",
            text(&directory),
            "--report",
            text(&report),
        ];
        let ran = pgclinic(&[&words[..], &["--format", "json"]].concat());
        assert_eq!(ran.exit, exit, "{}\n{}", ran.out, ran.err);
        rehearsal(&ran.out)
    }
}

fn states(document: &RehearsalDocument) -> Vec<Option<InjuryState>> {
    let injuries = document.injuries.iter();
    injuries.map(|injury| injury.state).collect()
}

#[test]
fn an_exam_is_marked_after_its_server_has_run() {
    for major in [13, 18] {
        let index = ["--relation", "public.measurements_dedup", "--random", "2"];
        let exam = Exam::made(major, &index);
        // Nothing is dealt with by a server that was killed.
        exam.with_server(
            major,
            &["SELECT count(*) FROM public.docs"],
            StopMode::Immediate,
        );
        let document = exam.marked(1);
        let untouched = Some(InjuryState::Untouched);
        assert!(
            states(&document).iter().all(|state| *state == untouched),
            "{document:#?}"
        );
        assert_eq!(
            document.score.false_alarms, 0,
            "{:#?}",
            document.false_alarms
        );

        let reindex = [
            "REINDEX INDEX public.measurements_dedup",
            "VACUUM public.measurements",
        ];
        exam.with_server(major, &reindex, StopMode::Fast);
        let document = exam.marked(0);
        let mended = Some(InjuryState::Mended);
        assert!(
            states(&document).iter().all(|state| *state == mended),
            "{document:#?}"
        );
        assert_eq!(document.score.rows_saved, document.score.rows);
    }
}

#[test]
fn a_table_that_was_made_again_lacks_no_segment() {
    let lost = [
        "--relation",
        "public.docs",
        "--random",
        "0",
        "--lost-segments",
        "1",
    ];
    let exam = Exam::made(18, &lost);
    let document = exam.marked(1);
    assert_eq!(states(&document), [Some(InjuryState::Untouched)]);
    exam.with_server(18, &["TRUNCATE public.docs"], StopMode::Fast);
    let document = exam.marked(0);
    assert_eq!(states(&document), [Some(InjuryState::Mended)]);
    assert_eq!(document.score.rows_saved, 0);
}

#[test]
fn what_is_no_rehearsal_is_refused() {
    let refused = |words: &[&str]| pgclinic(words).exits(2).err;
    let said = refused(&["drill", "--exam", "/nowhere/exam"]);
    assert!(said.contains("there is no exam in /nowhere/exam"), "{said}");
    let said = refused(&["drill", "--previous", "/nowhere/earlier.json"]);
    assert!(
        said.contains("--previous belongs to --on-copy-of"),
        "{said}"
    );
    let said = refused(&["drill", "--on-copy-of", "/nowhere"]);
    assert!(said.contains("/nowhere"), "{said}");
}
