//! `--redact`: a cluster whose names, values, host and directories all hold one word, damaged in
//! many ways, and no form of any document that holds the word.

use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_servers::{
    Checksums, ConnectionTarget, Scratch, Server, StartOptions, StopMode, copy_cluster,
};
use pgclinic_testkit::{as_primary, copy_of, run_as, scratch, seed, server};

use crate::common::{Ran, pgclinic, text};

/// The word; in capitals too.
const CANARY: &str = "zqcanary";
/// The host of every run of a test.
const HOST: &str = "bedside";
const DATABASE: &str = "zqcanary_db";
/// What values of rows begin with, which no name does.
const VALUES: [&str; 4] = [
    "zqcanary-value",
    "zqcanary long",
    "zqcanary note",
    "zqcanary text",
];

const OBJECTS: &str = r#"
CREATE SCHEMA zqcanary_schema;
CREATE TYPE zqcanary_schema.zqcanary_mood AS ENUM ('zqcanary_sad', 'zqcanary_happy');
CREATE TABLE zqcanary_schema.zqcanary_ledger (zqcanary_id int PRIMARY KEY, zqcanary_word text, zqcanary_long text, zqcanary_mood zqcanary_schema.zqcanary_mood, zqcanary_ids int[]) WITH (autovacuum_enabled = off);
ALTER TABLE zqcanary_schema.zqcanary_ledger ALTER zqcanary_long SET STORAGE EXTERNAL;
INSERT INTO zqcanary_schema.zqcanary_ledger SELECT g, 'zqcanary-value-' || g, repeat('zqcanary long ', 300), 'zqcanary_sad', ARRAY[g, g + 1] FROM generate_series(1, 1500) g;
CREATE INDEX zqcanary_by_word ON zqcanary_schema.zqcanary_ledger (zqcanary_word COLLATE "C");
CREATE INDEX zqcanary_by_hash ON zqcanary_schema.zqcanary_ledger USING hash (zqcanary_word);
CREATE INDEX zqcanary_by_gin ON zqcanary_schema.zqcanary_ledger USING gin (zqcanary_ids);
CREATE INDEX zqcanary_by_brin ON zqcanary_schema.zqcanary_ledger USING brin (zqcanary_id);
CREATE SEQUENCE zqcanary_schema.zqcanary_seq;
SELECT nextval('zqcanary_schema.zqcanary_seq');
CREATE TABLE "zqcanary Odd ""Name" ("zqcanary Odd Id" serial PRIMARY KEY, ref int REFERENCES zqcanary_schema.zqcanary_ledger, "zqcanary-t" text) WITH (autovacuum_enabled = off);
INSERT INTO "zqcanary Odd ""Name" (ref, "zqcanary-t") SELECT g, 'zqcanary text ' || g FROM generate_series(1, 1500) g;
CREATE TABLE zqcanary_notes (zqcanary_n int, zqcanary_note text) WITH (autovacuum_enabled = off);
INSERT INTO zqcanary_notes SELECT g, 'zqcanary note ' || g FROM generate_series(1, 2000) g;
CREATE UNIQUE INDEX zqcanary_notes_key ON zqcanary_notes (zqcanary_note COLLATE "C");
VACUUM zqcanary_schema.zqcanary_ledger;
CHECKPOINT"#;

/// The page of a rehearsal.
const REHEARSED: &str = "rehearsed.html";

/// Most of them leave true checksums behind, so that what is behind the checksum is told.
const INJURIES: [(&str, &str); 13] = [
    ("page-checksum", "public.zqcanary_notes"),
    ("lower-beyond-upper", "public.zqcanary_notes"),
    ("line-pointer-dead", "public.zqcanary_notes"),
    ("text-over-header", "public.zqcanary Odd \"Name"),
    ("zeroed-page", "public.zqcanary Odd \"Name"),
    ("value-bytes", "zqcanary_schema.zqcanary_ledger"),
    ("text-over-rows", "zqcanary_schema.zqcanary_ledger"),
    ("btree-entry-removed", "zqcanary_schema.zqcanary_by_word"),
    (
        "btree-entry-without-row",
        "zqcanary_schema.zqcanary_ledger_pkey",
    ),
    ("hash-code-bucket", "zqcanary_schema.zqcanary_by_hash"),
    ("gin-keys-swapped", "zqcanary_schema.zqcanary_by_gin"),
    ("brin-summary-narrowed", "zqcanary_schema.zqcanary_by_brin"),
    ("sequence-value", "zqcanary_schema.zqcanary_seq"),
];

struct Ward {
    scratch: Scratch,
    sound: PathBuf,
    hurt: PathBuf,
    /// What a run on the server's URL gave, as JSON.
    by_url: String,
}

impl Ward {
    fn new() -> Self {
        let copy = copy_of(&seed(&server(18), Checksums::On));
        let mut running = copy.start_with(&as_primary()).expect("a server");
        fill(&running);
        let url = ConnectionTarget::of(&running, DATABASE).to_string();
        let by_url = ["check", &url, "--format", "json", "--level", "pages"];
        let by_url = pgclinic(&by_url).exits(0).out;
        running.stop(StopMode::Fast).expect("a stop");
        let scratch = scratch();
        let [sound, hurt] = ["sound", "hurt"].map(|name| {
            let folder = scratch.path().join(format!("{CANARY} {name}"));
            std::fs::create_dir(&folder).expect("a directory");
            copy_cluster(&copy.pgdata, &folder).expect("a copy").pgdata
        });
        let ward = Ward {
            scratch,
            sound,
            hurt,
            by_url,
        };
        ward.injure();
        ward
    }

    fn injure(&self) {
        let sound = [
            "check",
            text(&self.sound),
            "--format",
            "json",
            "--level",
            "pages",
        ];
        let identifier = pgclinic(&sound).document().target.system_identifier;
        let identifier = identifier.expect("an identifier");
        for (injury, relation) in INJURIES {
            let journal = self.scratch.path().join(injury);
            let mut line = vec!["injure", text(&self.hurt), "--injury", injury];
            line.extend(["--database", DATABASE, "--relation", relation]);
            line.extend(["--this-is-not-production", &identifier]);
            line.extend(["--journal", text(&journal)]);
            if injury != "page-checksum" {
                line.push("--sealed");
            }
            pgclinic(&line).exits(0);
        }
    }

    /// The words of each run, without its form.
    fn runs(&self) -> Vec<Vec<String>> {
        let hurt = text(&self.hurt);
        let only = ["--database", DATABASE];
        let mut runs: Vec<Vec<&str>> = vec![
            vec!["check", hurt, "--level", "full", "--with", "measure"],
            vec!["measure", hurt],
            vec!["diff", text(&self.sound), hurt],
            vec!["heal", hurt, "--pages"],
            vec!["heal", hurt],
        ];
        for run in runs.iter_mut().take(2) {
            run.extend(only);
        }
        let page = self.scratch.path().join(REHEARSED);
        let mut rehearsed = vec!["drill", "--on-copy-of", text(&self.sound), "--random", "4"];
        rehearsed.extend([
            "--scratch",
            text(self.scratch.path()),
            "--report",
            text(&page),
        ]);
        runs.push(rehearsed);
        let inspected = [
            ("zqcanary_schema.zqcanary_ledger", "1"),
            ("zqcanary_schema.zqcanary_by_word", "1"),
            ("zqcanary_schema.zqcanary_by_gin", "1"),
            ("zqcanary_schema.zqcanary_seq", "0"),
            ("public.zqcanary Odd \"Name", "2"),
        ];
        for (relation, block) in inspected {
            runs.push(vec![
                "inspect",
                hurt,
                "--relation",
                relation,
                "--block",
                block,
            ]);
        }
        let owned = runs.into_iter();
        owned
            .map(|run| run.into_iter().map(str::to_owned).collect())
            .collect()
    }
}

fn fill(server: &Server) {
    let mut clinic = server.connect("clinic").expect("a session");
    clinic
        .execute(&format!("CREATE DATABASE {DATABASE}"))
        .expect("a database");
    let mut session = server.connect(DATABASE).expect("a session");
    for statement in OBJECTS.split(";\n") {
        session.execute(statement).expect(statement);
    }
}

fn names_something(text: &str) -> bool {
    text.to_lowercase().contains(CANARY)
}

#[track_caller]
fn names_nobody(text: &str, what: &str) {
    let lower = text.to_lowercase();
    for word in [CANARY, HOST] {
        let at = lower.find(word);
        let around = at.map(|at| {
            let mut chars = lower.char_indices().map(|(at, _)| at);
            let start = chars.find(|start| *start + 80 >= at).unwrap_or(0);
            lower[start..].chars().take(200).collect::<String>()
        });
        assert_eq!(around, None, "{what} names {word}");
    }
}

/// In every form that such a document has, from the saved one, which names much.
fn saved_names_nobody_in_any_form(json: &str, folder: &Path, what: &str) {
    assert!(names_something(json), "{what} has names to be found");
    assert!(json.contains("\"redacted\": false"), "{what}");
    let saved = folder.join("saved.json");
    std::fs::write(&saved, json).expect("a file");
    let forms = [
        "json",
        "text",
        "html",
        "jsonl",
        "sarif",
        "junit",
        "prometheus",
    ];
    let mut printed = 0;
    for form in forms {
        let plain = ["report", text(&saved), "--format", form];
        let ran: Ran = pgclinic(&plain);
        if ran.exit == 2 {
            // This document has no such form.
            continue;
        }
        let without = pgclinic(&[&plain[..], &["--redact"]].concat()).exits(0);
        names_nobody(&without.out, &format!("{what} as {form}"));
        printed += 1;
        let names = names_something(&ran.out);
        assert!(
            names || form == "prometheus",
            "{what} as {form} names nothing"
        );
        let says = match form {
            "json" | "sarif" => "\"redacted\": true",
            "jsonl" => "\"redacted\":true",
            _ => "pseudonyms for names, no values of rows, no pages",
        };
        let said = without.out.replace("\n  ", " ");
        assert!(said.contains(says), "{what} as {form}");
    }
    assert!(printed >= 3, "{what}");
}

#[test]
fn no_form_of_any_document_names_what_must_not_be_named() {
    let ward = Ward::new();
    let folder = ward.scratch.path();
    saved_names_nobody_in_any_form(&ward.by_url, folder, "a server by its URL");
    for run in ward.runs() {
        let what = run.join(" ");
        let words: Vec<&str> = run.iter().map(String::as_str).collect();
        let json = [&words[..], &["--format", "json"]].concat();
        // All that a document can hold.
        let more: &[&str] = match words[0] {
            "check" => &["--evidence", "20", "--values"],
            _ => &["--values"],
        };
        let full = pgclinic(&[&json[..], more].concat());
        saved_names_nobody_in_any_form(&full.out, folder, &what);
        let without = pgclinic(&[&json[..], &["--redact"]].concat());
        assert_eq!(without.exit, full.exit, "{what}: {}", without.err);
        names_nobody(&without.out, &what);
        assert!(without.out.contains("\"redacted\": true"), "{what}");
        if words[0] != "inspect" {
            let plain = pgclinic(&json).out;
            holds_no_values(&plain, &what);
            assert!(plain.contains("\"values\": false"), "{what}");
        }
        if words[0] == "drill" {
            let page = [&words[..], &["--redact"]].concat();
            pgclinic(&page).exits(full.exit);
            let page = std::fs::read_to_string(folder.join(REHEARSED)).expect("a page");
            names_nobody(&page, "the page of a rehearsal");
        }
    }
    many_messages_were_there(&ward);
    a_salvage_names_in_its_rows_alone(&ward);
    an_experiment_names_nobody(&ward);
    a_server_by_its_url_is_not_named(&ward);
}

#[track_caller]
fn holds_no_values(text: &str, what: &str) {
    for value in VALUES {
        assert!(!text.contains(value), "{what} holds {value}");
    }
}

/// An experiment on a table of a customer, of which it knows the shape.
fn an_experiment_names_nobody(ward: &Ward) {
    let into = ward.scratch.path().join(format!("{CANARY} lab"));
    let mut words = vec!["lab", "run", "toast-compression", "--scale", "smallest"];
    words.extend(["--blocks", "1", "--learn-from", text(&ward.sound)]);
    words.extend(["--database", DATABASE, "--into", text(&into), "--quiet"]);
    words.extend(["--relation", "zqcanary_schema.zqcanary_ledger"]);
    words.extend(["--format", "json", "--redact"]);
    let ran = pgclinic(&words).exits(0);
    names_nobody(&ran.out, "an experiment");
    let page = std::fs::read_to_string(into.join("report.html")).expect("a page");
    names_nobody(&page, "the page of an experiment");
    let said = pgclinic(&["lab", "report", text(&into), "--format", "json"]).exits(0);
    holds_no_values(&said.out, "an experiment");
    saved_names_nobody_in_any_form(&said.out, ward.scratch.path(), "an experiment");
}

/// What heals a running server is SQL, which is full of names.
fn a_server_by_its_url_is_not_named(ward: &Ward) {
    let mut chown = Command::new("chown");
    let owner = chown.args(["-R", &run_as().name]).arg(&ward.hurt).status();
    assert!(owner.is_ok_and(|status| status.success()));
    let options = StartOptions::default();
    let running = Server::start(&server(18), &run_as(), &ward.hurt, &options);
    let mut running = running.expect("a server");
    let url = ConnectionTarget {
        user: "postgres".into(),
        ..ConnectionTarget::of(&running, DATABASE)
    };
    let url = url.to_string();
    let heal = ["heal", &url, "--format", "json"];
    let plain = pgclinic(&heal);
    assert!(
        plain.out.contains("REINDEX INDEX"),
        "{} {}",
        plain.out,
        plain.err
    );
    holds_no_values(&plain.out, "heal by URL");
    let without = pgclinic(&[&heal[..], &["--redact"]].concat()).exits(plain.exit);
    names_nobody(&without.out, "heal by URL");
    saved_names_nobody_in_any_form(&plain.out, ward.scratch.path(), "heal by URL");
    an_experiment_by_url_names_nobody(ward, &url);
    let watch = ["watch", &url, "--once", "--format", "json"];
    let plain = pgclinic(&watch);
    saved_names_nobody_in_any_form(&plain.out, ward.scratch.path(), "watch");
    running.stop(StopMode::Fast).expect("a stop");
}

/// The server that is there already has a name in its URL.
fn an_experiment_by_url_names_nobody(ward: &Ward, url: &str) {
    let into = ward.scratch.path().join(format!("{CANARY} lab by URL"));
    let mut words = vec!["lab", "run", "toast-compression", "--scale", "smallest"];
    words.extend(["--blocks", "1", "--url", url, "--into", text(&into)]);
    words.extend(["--quiet", "--format", "json", "--redact"]);
    let ran = pgclinic(&words).exits(0);
    names_nobody(&ran.out, "an experiment by URL");
    let page = std::fs::read_to_string(into.join("report.html")).expect("a page");
    names_nobody(&page, "the page of an experiment by URL");
    let said = pgclinic(&["lab", "report", text(&into), "--format", "json"]).exits(0);
    saved_names_nobody_in_any_form(&said.out, ward.scratch.path(), "an experiment by URL");
}

/// The cluster of a plain drill is the drill's own; the machine and its directories are not.
#[test]
fn a_drill_names_neither_the_machine_nor_its_directories() {
    let scratch = scratch();
    let programs = scratch.path().join(format!("{CANARY} bin"));
    std::os::unix::fs::symlink(&server(15).bindir, &programs).expect("a link");
    let page = scratch.path().join("drill.html");
    let mut words = vec!["drill", "--pg-bindir", text(&programs), "--format", "json"];
    words.extend(["--injury", "page-checksum", "--report", text(&page)]);
    words.push("--redact");
    let ran = pgclinic(&words).exits(0);
    names_nobody(&ran.out, "a drill");
    let page = std::fs::read_to_string(page).expect("a page");
    names_nobody(&page, "the page of a drill");
    let saved = scratch.path().join("saved.json");
    std::fs::write(&saved, &ran.out).expect("a file");
    for form in ["text", "html"] {
        let again = pgclinic(&["report", text(&saved), "--format", form]).exits(0);
        names_nobody(&again.out, form);
    }
}

/// The check said many different things, or the above proves little.
fn many_messages_were_there(ward: &Ward) {
    let words = [
        "check",
        text(&ward.hurt),
        "--level",
        "full",
        "--format",
        "json",
    ];
    let document = pgclinic(&words).exits(1).document();
    let rules: std::collections::BTreeSet<_> = document
        .findings
        .iter()
        .map(|own| own.rule.as_str())
        .collect();
    assert!(rules.len() >= 15, "{rules:?}");
    // The words around the names stay: nothing of a message without names is lost.
    let plain = [&words[..], &["--redact"]].concat();
    let redacted = pgclinic(&plain).exits(1).document();
    let messages = document.findings.iter().zip(&redacted.findings);
    for (own, other) in messages {
        assert_eq!((&own.id, &own.rule), (&other.id, &other.rule));
        assert_eq!(own.place.path, other.place.path);
        if !names_something(&own.message) && own.cause.is_none() {
            assert_eq!(own.message, other.message);
        }
    }
}

fn a_salvage_names_in_its_rows_alone(ward: &Ward) {
    let to = ward.scratch.path().join("rows");
    let words = [
        "salvage",
        text(&ward.hurt),
        "--to",
        text(&to),
        "--database",
        DATABASE,
        "--verify",
    ];
    let ran = pgclinic(&[&words[..], &["--redact"]].concat());
    names_nobody(&ran.out, "the account");
    for file in ["salvage.json", "salvage.html"] {
        let account = std::fs::read_to_string(to.join(file)).expect("an account");
        names_nobody(&account, file);
    }
    let rows = to.join(DATABASE).join("public.zqcanary_notes.csv");
    let rows = std::fs::read_to_string(rows).expect("rows");
    assert!(rows.contains("zqcanary note 1"), "rows are rows");
    std::fs::remove_dir_all(&to).expect("the rows");
    pgclinic(&words).exits(ran.exit);
    let account = std::fs::read_to_string(to.join("salvage.json")).expect("an account");
    saved_names_nobody_in_any_form(&account, ward.scratch.path(), "the account of a salvage");
}

#[test]
fn a_key_gives_the_same_pseudonyms_again_and_a_short_one_is_refused() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let scratch = tempfile::tempdir().expect("a directory");
    let key = scratch.path().join("key");
    let run = |more: &[&str]| {
        let words = [
            "measure",
            text(&copy.pgdata),
            "--database",
            "clinic",
            "--format",
            "json",
        ];
        pgclinic(&[&words[..], more].concat())
    };
    let names = |ran: Ran| {
        let document: pgclinic_model::document::MeasureDocument =
            serde_json::from_str(&ran.exits(0).out).expect("a document");
        let relations = document.relations.into_iter();
        relations.filter_map(|own| own.relation).collect::<Vec<_>>()
    };
    std::fs::write(&key, "0123456789abcdef").expect("a key");
    let with = || names(run(&["--redact-with", text(&key)]));
    assert_eq!(with(), with());
    let others = names(run(&["--redact"]));
    assert_ne!(with(), others, "each run has a key of its own");
    assert!(others.iter().any(|name| name == "pg_class"), "{others:?}");
    assert!(others.iter().all(|name| name != "docs"), "{others:?}");
    std::fs::write(&key, "short").expect("a key");
    let refused = run(&["--redact-with", text(&key)]).exits(2);
    assert!(refused.err.contains("has 5 bytes"), "{}", refused.err);
    run(&["--redact", "--values"]).exits(2);
}
