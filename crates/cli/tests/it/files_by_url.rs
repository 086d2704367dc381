//! `inspect`, `measure`, `diff` and the deeper levels of `check` on a running server by its URL:
//! what they say of its directory.

use pgclinic_model::Level;
use pgclinic_model::document::{DiffDocument, DiffVerdict, MeasureDocument};

use crate::common;

use common::{Ran, hold_ledger, pgclinic, seen, text, told, url};
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{
    TempCopy, as_primary, copy_of, execute, overwrite, seed, server, streamed_backup, value,
};
use serde_json::Value;

fn start(major: u16) -> (Server, TempCopy) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let server = copy.start_with(&as_primary()).expect("a server");
    execute(&server, "CHECKPOINT");
    (server, copy)
}

/// The document without what names the target, and without the time.
fn content(ran: &Ran) -> Value {
    let mut document: Value = serde_json::from_str(&ran.out).expect("a document");
    let fields = document.as_object_mut().expect("an object");
    fields.remove("target").expect("a target");
    fields.remove("elapsed_s").expect("a time");
    document
}

#[test]
fn a_page_by_url_is_that_of_the_file() {
    for major in [13, 18] {
        let (mut server, copy) = start(major);
        for (relation, block) in [("public.docs", "1"), ("pg_catalog.pg_class", "0")] {
            let more = ["--relation", relation, "--block", block, "--format", "json"];
            let of = |target: &str| {
                let words = ["inspect", target, "--database", "clinic"];
                pgclinic(&[&words[..], &more[..]].concat()).exits(0)
            };
            let (by_url, by_path) = (of(&url(&server, "postgres")), of(text(&copy.pgdata)));
            assert_eq!(content(&by_url), content(&by_path));
            let document: Value = serde_json::from_str(&by_url.out).expect("a document");
            assert_eq!(document["target"]["kind"], "server");
        }
        server.stop(StopMode::Fast).expect("a stop");
    }
}

fn measured(target: &str, more: &[&str]) -> MeasureDocument {
    let ran = pgclinic(&[&["measure", target, "--format", "json"], more].concat()).exits(0);
    let document: MeasureDocument = serde_json::from_str(&ran.out).expect("a document");
    assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
    document
}

#[test]
fn figures_by_url_are_those_of_the_directory() {
    for major in [13, 18] {
        let (mut server, copy) = start(major);
        let own = url(&server, "postgres");
        for more in [
            &[][..],
            &["--relation", "public.docs"],
            &["--sample", "5%", "--database", "clinic"],
        ] {
            let (by_url, by_path) = (measured(&own, more), measured(text(&copy.pgdata), more));
            assert_eq!(by_url.relations, by_path.relations);
            assert_eq!(by_url.databases, by_path.databases);
            assert_eq!(by_url.hints, by_path.hints);
            assert_eq!(by_url.target.kind, "server");
            assert_eq!(by_url.target.spec, own);
        }
        server.stop(StopMode::Fast).expect("a stop");
    }
}

#[track_caller]
fn diff(a: &str, b: &str, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", a, b, "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

#[test]
fn a_server_by_url_is_compared_with_its_backup() {
    let (mut server, copy) = start(18);
    let own = url(&server, "postgres");
    let scratch = tempfile::tempdir().expect("a directory");
    let backup = scratch.path().join("backup");
    streamed_backup(&server, &backup, None);
    execute(&server, "UPDATE public.docs SET id = id; CHECKPOINT");
    for (a, b) in [(own.as_str(), text(&backup)), (text(&backup), own.as_str())] {
        let document = diff(a, b, 0);
        assert_eq!(document.verdict, DiffVerdict::Explained);
    }
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&copy.pgdata.join(&path), 8192 + 6000);
    let document = diff(&own, text(&backup), 1);
    let fork = document.forks.first().expect("a fork");
    assert_eq!(fork.relation.as_deref(), Some("frozen"));
    let blocks: Vec<u32> = fork.blocks.iter().map(|own| own.block).collect();
    assert_eq!(blocks, [1]);
    server.stop(StopMode::Fast).expect("a stop");
}

/// A level that no stream can have is not lowered in silence: the files are read through SQL.
#[test]
fn a_deeper_level_by_url_finds_what_it_finds_in_the_directory() {
    let (mut server, copy) = start(15);
    let own = url(&server, "postgres");
    let check = |target: &str, exit| {
        let ran = pgclinic(&["check", target, "--level", "full", "--format", "json"]);
        let document = ran.document();
        assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
        hold_ledger(&document);
        document
    };
    let sound = check(&own, 0);
    assert_eq!((sound.level, sound.findings_total), (Level::Full, 0));
    assert_eq!(sound.target.kind, "server");
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    overwrite(&copy.pgdata.join(&path), 8192 + 20);
    let (by_url, by_path) = (check(&own, 1), check(text(&copy.pgdata), 1));
    assert_eq!(seen(&by_url), seen(&by_path));
    server.stop(StopMode::Fast).expect("a stop");
}

/// The sentence names the right, and what it says helps.
#[test]
fn a_missing_right_is_named() {
    let (mut server, _copy) = start(15);
    execute(&server, "CREATE ROLE reader LOGIN");
    let reader = url(&server, "reader");
    let page = ["inspect", &reader, "--relation", "public.docs"];
    let refused = pgclinic(&page).exits(2).err;
    assert_eq!(refused.trim().lines().count(), 1, "{refused}");
    let (_, grant) = refused.trim().split_once("by GRANT ").expect("a statement");
    execute(&server, &format!("GRANT {grant}"));
    pgclinic(&page).exits(0);
    pgclinic(&["measure", &reader, "--relation", "public.docs"]).exits(0);
    server.stop(StopMode::Fast).expect("a stop");
    let unreachable = pgclinic(&["measure", &reader]).exits(2).err;
    assert!(unreachable.contains("postgres://reader@"), "{unreachable}");
}
