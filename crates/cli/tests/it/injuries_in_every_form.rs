//! The same injuries in every form in which people have their pages: the same findings.

use pgclinic_model::CheckDocument;

use crate::common;

use std::path::Path;

use common::{apart_from_manifests, pgclinic, text, told};
use pgclinic_servers::{Checksums, ConnectionTarget, StopMode};
use pgclinic_testkit::{
    Backups, Packing, TempCopy, archived, clinic, copy_of, open, scratch, seed, server,
    with_summaries,
};

/// What is done to which relation. All but the first leave true checksums behind.
const INJURIES: [(&str, &str); 10] = [
    ("page-checksum", "sales.orders"),
    ("lower-beyond-upper", "public.measurements"),
    ("line-pointer-beyond-page", "public.chains"),
    ("hoff-larger", "public.pruned"),
    ("btree-sibling", "public.measurements_pkey"),
    ("btree-entries-swapped", "public.frozen_pkey"),
    ("truncated-file", "sales.order_lines"),
    ("lost-file", "public.settled"),
    ("all-visible-flag-cleared", "public.frozen"),
    ("chunk-number-shifted", "pg_toast.pg_toast_{docs}"),
];

/// Findings of level pages in pages: a checksum, and a header.
const AT_PAGES: usize = 2;
/// Names and lengths are held against catalogs where both are of one moment.
const OF_NAMES: &str = "missing-file";

/// What stands in pages.
fn in_pages(document: &CheckDocument) -> common::Seen {
    let mut seen = apart_from_manifests(document);
    seen.retain(|(rule, ..)| rule != OF_NAMES);
    seen
}

/// Hurts a stopped cluster in each of these ways.
fn injure(copy: &TempCopy, scratch: &Path) {
    let cluster = open(&copy.pgdata);
    let identifier = cluster.control.trusted().expect("a control file");
    let identifier = identifier.system_identifier.to_string();
    let catalog = clinic(&cluster);
    let docs = catalog.relations.values().find(|own| own.name == "docs");
    let docs = docs.expect("a table").oid.to_string();
    for (injury, relation) in INJURIES {
        let relation = relation.replace("{docs}", &docs);
        let journal = scratch.join(injury);
        let mut line = vec!["injure", text(&copy.pgdata), "--injury", injury];
        line.extend(["--database", "clinic", "--relation", &relation]);
        line.extend(["--this-is-not-production", &identifier]);
        line.extend(["--journal", text(&journal)]);
        if injury != "page-checksum" {
            line.push("--sealed");
        }
        pgclinic(&line).exits(0);
    }
}

#[track_caller]
fn check(words: &[&str], level: &str) -> CheckDocument {
    let more = ["--level", level, "--format", "json"];
    let ran = pgclinic(&[&["check"], words, &more[..]].concat());
    let document = ran.document();
    assert_eq!(ran.exit, 1, "{words:?}: {}\n{}", told(&document), ran.err);
    document
}

#[test]
fn the_same_damage_gives_the_same_findings_in_every_form() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let scratch = scratch();
    injure(&copy, scratch.path());
    let data = [text(&copy.pgdata)];
    let stopped = apart_from_manifests(&check(&data, "full"));
    let stopped_pages = check(&data, "pages");
    let at_pages = in_pages(&stopped_pages);

    let mut server = copy.start_with(&with_summaries()).expect("a server");
    let changes = "CREATE TABLE since AS SELECT g FROM generate_series(1, 5000) g";
    let backups = Backups::taken(&server, &scratch, changes);
    let running = check(&data, "full");
    let running_pages = check(&data, "pages");
    let url = ConnectionTarget::of(&server, "clinic").to_string();
    let stream = check(&[&url], "pages");
    server.stop(StopMode::Fast).expect("a stop");
    assert_eq!(
        apart_from_manifests(&check(&data, "full")),
        stopped,
        "after a server"
    );

    let names = apart_from_manifests(&stopped_pages).len() - at_pages.len();
    assert_eq!((at_pages.len(), names), (AT_PAGES, 1), "{at_pages:#?}");
    assert!(at_pages.is_subset(&stopped));

    // Pages alone: the same in every form.
    assert_eq!(in_pages(&running_pages), at_pages, "a running server");
    let with_names = apart_from_manifests(&stopped_pages);
    assert_eq!(apart_from_manifests(&stream), with_names, "a stream");
    let archives = Packing::ALL.map(|packing| archived(&backups.again, packing));
    for archive in &archives {
        let own = in_pages(&check(&[text(archive)], "pages"));
        assert_eq!(own, at_pages, "{}", archive.display());
    }

    // What pages say of each other is judged where recovery is done only, and the others say so.
    let plain = check(&[text(&backups.again)], "full");
    for document in [&running, &plain] {
        let own = apart_from_manifests(document);
        assert!(own.is_superset(&at_pages) && own.is_subset(&stopped));
        assert!(says_what_is_not_compared(document), "{}", told(document));
    }
    let plain = apart_from_manifests(&plain);
    assert_eq!(
        apart_from_manifests(&check(&backups.chain(), "full")),
        plain,
        "a chain"
    );
    for archive in &archives {
        let own = apart_from_manifests(&check(&[text(archive)], "full"));
        assert_eq!(own, plain, "{}", archive.display());
    }
}

fn says_what_is_not_compared(document: &CheckDocument) -> bool {
    let mut told = document.coverage.not_checked.iter();
    told.any(|entry| {
        entry.what.contains("against each other")
            || entry.what.contains("rows against index entries")
    })
}
