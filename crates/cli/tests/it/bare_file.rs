//! One relation file without its cluster: its pages are looked at, and what is unknown is said.

use pgclinic_model::{CheckDocument, Verdict};

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{hold_ledger, pgclinic, text, told};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{all_majors, scratch, seed};

/// The first file of a table of several pages, with its maps beside it.
fn docs() -> PathBuf {
    let installation = all_majors().pop().expect("the newest");
    let pgdata = seed(&installation, Checksums::On).pgdata;
    let at = [
        "inspect",
        text(&pgdata),
        "--relation",
        "public.docs",
        "--format",
        "json",
    ];
    let page = pgclinic(&at).exits(0).out;
    let page: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    let path = page
        .pointer("/place/path")
        .and_then(serde_json::Value::as_str);
    pgdata.join(path.expect("a path"))
}

fn check(file: &Path) -> CheckDocument {
    let ran = pgclinic(&["check", text(file), "--format", "json"]);
    let document = ran.document();
    hold_ledger(&document);
    assert_eq!(document.coverage.bytes_unreadable, 0, "{}", told(&document));
    let code = match document.verdict {
        Verdict::Healthy => 0,
        Verdict::Damaged => 1,
        Verdict::Incomplete => 3,
    };
    assert_eq!(ran.exit, code);
    document
}

#[test]
fn a_relation_file_and_its_maps() {
    let file = docs();
    let document = check(&file);
    assert_ne!(document.verdict, Verdict::Damaged, "{}", told(&document));
    assert!(
        !document.coverage.not_checked.is_empty(),
        "columns and checksums are unknown"
    );
    let main = file.metadata().expect("a file").len() / 8192;
    assert!(document.coverage.pages > main, "the maps lie beside it");
    let page = pgclinic(&["inspect", text(&file), "--block", "3"]).exits(0);
    assert!(page.out.contains("pd_lower"), "{}", page.out);
}

#[test]
fn a_file_of_any_name() {
    let scratch = scratch();
    let mut bytes = fs::read(docs()).expect("a file");
    for name in ["page.bin", "copy", "16384.backup.1", "17156.2", "t3_99"] {
        let file = scratch.path().join(name);
        fs::write(&file, &bytes).expect("a file");
        let document = check(&file);
        assert_ne!(
            document.verdict,
            Verdict::Damaged,
            "{name}: {}",
            told(&document)
        );
        pgclinic(&["inspect", text(&file), "--block", "1"]).exits(if name == "17156.2" {
            2
        } else {
            0
        });
    }
    // pd_lower behind pd_upper, in block 2.
    bytes[2 * 8192 + 12..2 * 8192 + 14].copy_from_slice(&[0xFF, 0x1F]);
    let file = scratch.path().join("hurt.bin");
    fs::write(&file, &bytes).expect("a file");
    let document = check(&file);
    let finding = document.findings.first().expect("a finding");
    assert_eq!(
        (&*finding.rule, finding.place.block),
        ("lower-beyond-upper", Some(2))
    );
    assert_eq!(finding.place.path, "hurt.bin");
}
