//! Nothing is wrong with a cluster that PostgreSQL made, filled and stopped.

use pgclinic_model::{CheckDocument, Severity, Verdict};

use crate::common;

use common::{check_json, count, hold_ledger, pgclinic, text, told};
use pgclinic_servers::Checksums;
use pgclinic_servers::Installation;
use pgclinic_testkit::{all_majors, seed};

fn is_healthy(installation: &Installation, checksums: Checksums) {
    let seeded = seed(installation, checksums);
    let document = check_json(&seeded.pgdata, 0);
    assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
    let loud = count(&document, Severity::Damage) + count(&document, Severity::Warning);
    assert_eq!(loud, 0, "{}", told(&document));
    assert!(!document.needs_recovery);
    assert_eq!(document.coverage.bytes_skipped, 0);
    assert_eq!(document.target.major, Some(installation.major));
    assert_eq!(document.target.checksums, Some(checksums == Checksums::On));

    let pages = ["check", text(&seeded.pgdata), "--level", "pages"];
    let ran = pgclinic(&[&pages[..], &["--format", "json"]].concat()).exits(0);
    hold_ledger(&ran.document());
    assert_eq!(
        ran.document().coverage.bytes_seen,
        document.coverage.bytes_seen,
        "every level sees the same files"
    );
    let words = pgclinic(&pages).exits(0);
    let beginning = match checksums {
        Checksums::On => "HEALTHY  no damage in",
        // A value that became another one looks as sound as any.
        Checksums::Off => "HEALTHY (no data checksums: values cannot be verified)  no damage in",
    };
    assert!(words.first_line().starts_with(beginning), "{}", words.out);
    assert_eq!(words.err, "");
}

#[test]
fn every_major_with_checksums() {
    for installation in all_majors() {
        is_healthy(&installation, Checksums::On);
    }
}

#[test]
fn the_oldest_and_the_newest_without_checksums() {
    let majors = all_majors();
    for installation in [&majors[0], &majors[majors.len() - 1]] {
        is_healthy(installation, Checksums::Off);
    }
}

#[test]
fn a_table_is_checked_with_what_belongs_to_it() {
    let newest = all_majors().pop().expect("a major");
    let seeded = seed(&newest, Checksums::On);
    let part = |selection: &[&str]| {
        let whole = ["check", text(&seeded.pgdata), "--level", "full"];
        let json = ["--database", "clinic", "--format", "json"];
        let ran = pgclinic(&[&whole, selection, &json].concat()).exits(0);
        hold_ledger(&ran.document());
        ran.document()
    };
    let gaps = |document: &CheckDocument| {
        let gaps = document.coverage.not_checked.iter();
        let left_out = gaps.filter(|gap| gap.why.contains("asked for"));
        left_out.map(|gap| gap.what.clone()).collect::<Vec<_>>()
    };
    let table = part(&["--relation", "public.docs"]);
    assert!(table.coverage.relations > 4, "{}", told(&table));
    assert_eq!(gaps(&table), [""; 0]);

    let index = part(&["--relation", "public.docs_title"]);
    assert_eq!(index.coverage.relations, 1);
    let told_of_index = ["entries against rows of public.docs_title"];
    assert_eq!(gaps(&index), told_of_index);

    let blocks = part(&["--relation", "public.docs_title", "--blocks", "0..1"]);
    let told_of_blocks = ["how the pages of relations hang together"];
    assert_eq!(gaps(&blocks), told_of_blocks);
}
