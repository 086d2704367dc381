//! One wound from end to end: made on a copy, found, shown, explained, taken back.

use pgclinic_cluster::Cluster;
use pgclinic_model::{CheckDocument, Finding, Severity, Verdict};

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{Ran, check_json, count, files, pgclinic, text, told};
use pgclinic_servers::Checksums;
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{all_majors, copy_of, scratch, seed};

const PAGE: usize = 8192;
const RELATION: [&str; 4] = ["--database", "clinic", "--relation", "public.docs"];

fn newest_seed() -> PathBuf {
    let installation = all_majors().pop().expect("the newest");
    seed(&installation, Checksums::On).pgdata
}

/// The journal that a run of `injure` named in its last line.
fn journal(ran: &Ran) -> String {
    let line = ran
        .out
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("undo: pgclinic injure --undo "));
    line.unwrap_or_else(|| panic!("{}", ran.out)).to_owned()
}

/// The files of a cluster by their paths in it, but for the marker of copies.
fn contents(pgdata: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let inside = |path: &Path| path.strip_prefix(pgdata).expect("inside").to_path_buf();
    let all = files(pgdata)
        .into_iter()
        .map(|(path, bytes)| (inside(&path), bytes));
    all.filter(|(path, _)| path != Path::new("pgclinic.drill"))
        .collect()
}

fn only_damage(document: &CheckDocument) -> Vec<&Finding> {
    document
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Damage)
        .collect()
}

/// The finding names its block in every way, and the page stands beside it as it is on disk.
fn place_is_told(document: &CheckDocument, copy: &Path) -> (String, u32) {
    let finding = only_damage(document)[0];
    assert_eq!(finding.rule, "checksum-mismatch");
    let place = &finding.place;
    assert_eq!(place.relation_name(), "public.docs");
    assert_eq!(place.database.as_deref(), Some("clinic"));
    assert_eq!(place.bytes, Some([8, 10]));
    let block = place.block.expect("a block");
    let bytes = std::fs::read(copy.join(&place.path)).expect("the file");
    let start = usize::try_from(block).expect("a small file") * PAGE;
    let [evidence] = &*document.evidence else {
        panic!("one page of evidence")
    };
    assert_eq!((&evidence.path, evidence.block), (&place.path, block));
    let page = STANDARD.decode(&evidence.page).expect("base64");
    assert!(
        page == bytes[start..start + PAGE],
        "the evidence is the page"
    );
    let [relation] = &*document.relations else {
        panic!("one relation")
    };
    assert_eq!(relation.damaged, [[u64::from(block), u64::from(block) + 1]]);
    (
        finding.server_says.clone().expect("the server's words"),
        block,
    )
}

fn shown_in_every_form(copy: &str, block: u32, document: &Path) {
    let words = pgclinic(&["check", copy]).exits(1);
    assert!(
        words
            .first_line()
            .starts_with("DAMAGED  1 relation, 1 page"),
        "{}",
        words.out
    );
    assert!(words.out.contains("checksum-mismatch"), "{}", words.out);
    let block = block.to_string();
    for format in ["text", "json", "html"] {
        let at = ["inspect", copy, "--block", &block, "--format", format];
        let page = pgclinic(&[&at[..], &RELATION].concat()).exits(0);
        assert!(page.out.contains("pd_lower"), "{format}: {}", page.out);
        let checked = pgclinic(&["check", copy, "--format", format]).exits(1);
        let again = pgclinic(&["report", text(document), "--format", format]).exits(0);
        for form in [checked, again] {
            assert!(
                form.out.contains("checksum-mismatch"),
                "{format}: {}",
                form.out
            );
            assert_eq!(form.out.starts_with("<!doctype html>"), format == "html");
        }
    }
}

fn explained(copy: &str, message: &str) {
    let rule = pgclinic(&["explain", "checksum-mismatch"]).exits(0);
    assert!(
        rule.out.contains("page verification failed"),
        "{}",
        rule.out
    );
    let told = pgclinic(&["explain", message, copy]).exits(0);
    assert!(told.first_line().contains("take a copy"), "{}", told.out);
    assert!(
        told.out.contains("public.docs") && told.out.contains("clinic"),
        "{}",
        told.out
    );
    assert!(told.out.contains("rows"), "{}", told.out);
}

/// Pages of rules say by which injury their example is made, so that a reader can make it too.
#[test]
fn every_injury_that_the_page_of_a_rule_names_can_be_made() {
    let injuries = pgclinic(&["injure", "--list"]).exits(0).out;
    let known: Vec<&str> = injuries
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut named = 0;
    for rule in pgclinic_check::rules() {
        let Some((_, rest)) = rule.explain.split_once("The injury `") else {
            continue;
        };
        let injury = rest.split('`').next().unwrap_or_default();
        assert!(known.contains(&injury), "{}: {injury}", rule.name);
        named += 1;
    }
    assert!(named > 100, "{named} pages name an injury");
}

#[test]
fn a_wound_from_end_to_end() {
    let original = newest_seed();
    let scratch = scratch();
    let copy = scratch.path().join("copy");
    let wound = [
        "injure",
        text(&original),
        "--copy-to",
        text(&copy),
        "--injury",
        "zeroed-sector",
    ];
    let injured = pgclinic(&[&wound[..], &RELATION].concat()).exits(0);
    let document = check_json(&copy, 1);
    assert_eq!(document.verdict, Verdict::Damaged);
    let [root, followers @ ..] = &*only_damage(&document) else {
        panic!("{}", told(&document));
    };
    assert_eq!(root.caused_by, None);
    let follows = |finding: &&Finding| finding.caused_by.as_ref() == Some(&root.id);
    assert!(followers.iter().all(follows), "{}", told(&document));
    // Pages hold what customers wrote: they stand in a report only where somebody asked.
    assert!(document.evidence.is_empty());
    let line = ["check", text(&copy), "--format", "json", "--evidence", "9"];
    let (server_says, block) = place_is_told(&pgclinic(&line).exits(1).document(), &copy);
    assert!(
        injured.out.contains(&format!("block {block},")),
        "{}",
        injured.out
    );

    let again = check_json(&copy, 1);
    let ids = |document: &CheckDocument| {
        document
            .findings
            .iter()
            .map(|finding| finding.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&document), ids(&again), "two runs agree");

    let saved = scratch.path().join("findings.json");
    pgclinic(&[
        "check",
        text(&copy),
        "--format",
        "json",
        "--output",
        text(&saved),
    ])
    .exits(1);
    shown_in_every_form(text(&copy), block, &saved);
    explained(text(&copy), &server_says);

    pgclinic(&["injure", "--undo", &journal(&injured)]).exits(0);
    check_json(&copy, 0);
    assert!(
        contents(&copy) == contents(&original),
        "every file is as it was"
    );
    let twice = pgclinic(&["injure", "--undo", &journal(&injured)]).exits(0);
    assert!(twice.out.contains("nothing was written"), "{}", twice.out);
}

/// A plan shows the same wound and writes nothing.
#[test]
fn a_plan_is_only_shown() {
    let original = newest_seed();
    let scratch = scratch();
    let copy = scratch.path().join("copy");
    let wound = [
        "injure",
        text(&original),
        "--copy-to",
        text(&copy),
        "--injury",
        "flipped-bit",
        "--plan",
    ];
    let shown = pgclinic(&wound).exits(0);
    assert!(shown.out.starts_with("flipped-bit: "), "{}", shown.out);
    assert!(!copy.exists());
}

/// Half of a page of `pg_class` is gone: what the other pages name is used, and the gap is told.
#[test]
fn a_damaged_catalog_names_what_is_left() {
    let installation = all_majors().pop().expect("the newest");
    let copy = copy_of(&seed(&installation, Checksums::On));
    let source = Arc::new(DataDirectory::open(&copy.pgdata).expect("a directory"));
    let cluster = Cluster::open(source).expect("a cluster");
    let clinic = cluster
        .databases
        .values()
        .find(|database| database.name.as_deref() == Some("clinic"));
    let oid = clinic.expect("the database").oid;
    let catalog = cluster.catalog(oid);
    let pg_class = catalog
        .by_name("pg_catalog", "pg_class")
        .expect("its own row");
    let path = copy
        .pgdata
        .join(format!("base/{oid}/{}", pg_class.filenode));
    let mut bytes = std::fs::read(&path).expect("the file");
    // Not the first pages, where pg_class and its like stand.
    let start = bytes.len() / PAGE / 2 * PAGE;
    bytes[start..start + PAGE / 2].fill(0);
    std::fs::write(&path, &bytes).expect("written");

    let document = check_json(&copy.pgdata, 1);
    // Nothing is damaged but its page; the relations whose rows stood there are named by its
    // indexes.
    let damage = only_damage(&document);
    assert!(damage.iter().any(|finding| finding.rule == "relation-lost"));
    assert!(
        damage.iter().all(|finding| finding.rule == "relation-lost"
            || finding.place.relation_name() == "pg_catalog.pg_class"),
        "{}",
        told(&document)
    );
    assert_eq!(
        count(&document, Severity::Warning),
        0,
        "{}",
        told(&document)
    );
    let gap = document
        .coverage
        .not_checked
        .iter()
        .find(|gap| gap.what.contains("pg_class"));
    assert!(gap.is_some_and(|gap| !gap.inherent), "{}", told(&document));
    // Names from the other pages are still there.
    let words = [
        "inspect",
        text(&copy.pgdata),
        "--relation",
        "public.visits",
        "--format",
        "text",
    ];
    assert!(pgclinic(&words).exits(0).out.contains("public.visits"));
}
