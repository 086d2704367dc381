//! `--collate-with`: text under collations of a library is compared by a server that has the
//! library.

use pgclinic_model::document::NotChecked;
use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use std::path::Path;

use common::pgclinic;
use pgclinic_servers::{Checksums, Installation, StopMode};
use pgclinic_testkit::{TempCopy, all_majors, copy_of, seed};

/// Texts that Swedish and German order otherwise, under an index of each shape.
const WORDS: &str = "
CREATE COLLATION own (provider = icu, locale = 'sv');
CREATE TABLE words (id int, word text COLLATE own, code char(9) COLLATE own);
INSERT INTO words SELECT i, chr(97 + i % 26) || CASE i % 3 WHEN 0 THEN 'ö' WHEN 1 THEN 'o' ELSE 'z' END || i,
  CASE WHEN i % 2 = 0 THEN 'ö' ELSE 'p' END || i FROM generate_series(1, 3000) i;
INSERT INTO words VALUES (0, 'ö', 'ö'), (0, 'z', 'z'), (0, NULL, NULL), (0, 'o', '');
CREATE INDEX words_word ON words (word);
CREATE INDEX words_down ON words (word DESC);
CREATE INDEX words_code ON words ((id % 10), code, word);
CREATE INDEX words_plain ON words (word text_pattern_ops);
";

fn made(installation: &Installation) -> TempCopy {
    let copy = copy_of(&seed(installation, Checksums::On));
    with_server(&copy, WORDS);
    copy
}

fn with_server(copy: &TempCopy, sql: &str) {
    let mut server = copy.start().unwrap();
    let mut session = server.connect("postgres").unwrap();
    session.execute(sql).unwrap();
    session.execute("CHECKPOINT").unwrap();
    drop(session);
    server.stop(StopMode::Fast).unwrap();
}

fn check(installation: &Installation, pgdata: &Path) -> CheckDocument {
    let bindir = installation.bindir.to_str().unwrap();
    let pgdata = pgdata.to_str().unwrap();
    pgclinic(&[
        "check",
        pgdata,
        "--collate-with",
        bindir,
        "--format",
        "json",
    ])
    .document()
}

/// Relations with findings of a rule and severity, each once.
fn relations(document: &CheckDocument, rule: &str, severity: Severity) -> Vec<String> {
    let own = document.findings.iter();
    let own = own.filter(|finding| finding.rule == rule && finding.severity == severity);
    let mut names: Vec<String> = own
        .filter_map(|finding| finding.place.relation.clone())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn the_library_decides(major: u16) {
    const RULE: &str = "btree-not-in-collation-order";
    const INDEXES: [&str; 3] = ["words_code", "words_down", "words_word"];
    let installation = all_majors()
        .into_iter()
        .find(|installation| installation.major == major)
        .unwrap();
    let copy = made(&installation);
    let healthy = check(&installation, &copy.pgdata);
    assert_eq!(healthy.verdict, Verdict::Healthy, "{:?}", healthy.findings);
    assert_eq!(healthy.findings, []);
    let gaps = healthy.coverage.not_checked.iter();
    let of_words = |gap: &&NotChecked| gap.what.contains(".words_");
    assert_eq!(gaps.filter(of_words).count(), 0, "the library was asked");

    let locale = if major >= 17 {
        "colllocale"
    } else if major >= 15 {
        "colliculocale"
    } else {
        "collcollate"
    };
    with_server(
        &copy,
        &format!("UPDATE pg_collation SET {locale} = 'de' WHERE collname = 'own'"),
    );
    let damaged = check(&installation, &copy.pgdata);
    assert_eq!(damaged.verdict, Verdict::Damaged);
    assert_eq!(relations(&damaged, RULE, Severity::Damage), INDEXES);

    with_server(
        &copy,
        "UPDATE pg_collation SET collversion = '1.2' WHERE collname = 'own'",
    );
    let elder = check(&installation, &copy.pgdata);
    assert_eq!(elder.verdict, Verdict::Healthy, "made elsewhere, perhaps");
    assert_eq!(relations(&elder, RULE, Severity::Warning), INDEXES);
    let versions = elder.findings.iter();
    let versions = versions.filter(|finding| finding.rule == "collation-version-changed");
    assert_eq!(versions.count(), 1);
}

#[test]
fn the_library_decides_in_fifteen() {
    the_library_decides(15);
}

#[test]
fn the_library_decides_in_eighteen() {
    the_library_decides(18);
}
