//! Findings that somebody knows of are counted and shown, and the exit code passes them over; what
//! is new decides it.

use std::path::{Path, PathBuf};

use pgclinic_model::{CheckDocument, Verdict};
use tempfile::TempDir;

use crate::common::{Ran, pgclinic, text};

/// A cluster with one damaged page, and a directory for lists and reports.
struct Ward {
    folder: TempDir,
    pgdata: PathBuf,
}

impl Ward {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let demo = folder.path().join("demo");
        pgclinic(&["demo", "--to", text(&demo)]).exits(0);
        let ward = Ward {
            pgdata: demo.join("shop"),
            folder,
        };
        ward.injure("public.orders");
        ward
    }

    fn injure(&self, relation: &str) {
        let wound = ["--injury", "page-checksum", "--relation", relation];
        let journal = self.file(relation, "");
        let line = ["injure", text(&self.pgdata), "--journal", text(&journal)];
        pgclinic(&[&line[..], &wound[..]].concat()).exits(0);
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        if !content.is_empty() {
            std::fs::write(&path, content).expect("a file");
        }
        path
    }

    fn check(&self, options: &[&str]) -> Ran {
        pgclinic(&[&["check", text(&self.pgdata)], options].concat())
    }

    fn ignoring(&self, list: &Path) -> Ran {
        self.check(&["--ignore", text(list)])
    }
}

#[test]
fn a_list_has_reasons_and_last_days() {
    let ward = Ward::new();
    let list = ward.file(
        "known.toml",
        "[[ignore]]\nrule = \"checksum-*\"\nrelation = \"public.orders\"\nreason = \"restored on Sunday\"\nuntil = \"2999-12-31\"\n",
    );
    let ran = ward.ignoring(&list).exits(0);
    let first = ran.out.lines().next().expect("a line");
    assert!(first.starts_with("DAMAGED  1 relation, 1 page"), "{first}");
    assert!(first.contains("1 finding ignored"), "{first}");
    assert!(
        ran.out.contains("restored on Sunday (until 2999-12-31)"),
        "{}",
        ran.out
    );
    let json = ward.check(&["--ignore", text(&list), "--format", "json"]);
    let document: CheckDocument = json.exits(0).document();
    assert_eq!(document.verdict, Verdict::Damaged);
    let sarif = ward.check(&["--ignore", text(&list), "--format", "sarif"]);
    assert!(
        sarif
            .exits(0)
            .out
            .contains("\"justification\": \"restored on Sunday\"")
    );

    ward.injure("public.customers");
    let more = ward.ignoring(&list).exits(1);
    assert!(more.out.contains("1 finding ignored"), "{}", more.out);

    let over = ward.file(
        "over.toml",
        "[[ignore]]\nrule = \"*\"\nreason = \"restored on Sunday\"\nuntil = \"2020-02-29\"\n",
    );
    let ran = ward.ignoring(&over).exits(1);
    assert!(
        ran.err
            .contains("no longer ignored since 2020-02-29: restored on Sunday"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("ignored"), "{}", ran.out);
}

#[test]
fn a_list_with_a_mistake_is_refused_before_the_work() {
    let ward = Ward::new();
    for (content, why) in [
        (
            "[[ignore]]\nrule = \"a\"\nuntil = \"2999-12-31\"\n",
            "reason",
        ),
        (
            "[[ignore]]\nrule = \"a\"\nreason = \" \"\nuntil = \"2999-12-31\"\n",
            "needs a reason",
        ),
        (
            "[[ignore]]\nreason = \"r\"\nuntil = \"2999-12-31\"\n",
            "one of rule, relation, path and id",
        ),
        (
            "[[ignore]]\nrule = \"a\"\nreason = \"r\"\nuntil = \"soon\"\n",
            "no day such as",
        ),
        ("[[ignored]]\nrule = \"a\"\n", "unknown field"),
    ] {
        let list = ward.file("wrong.toml", content);
        let ran = ward.ignoring(&list).exits(2);
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    ward.check(&["--baseline", "/nowhere.json"]).exits(2);
}

#[test]
fn only_what_is_new_since_a_baseline_counts() {
    let ward = Ward::new();
    let old = ward.check(&["--format", "json"]).exits(1).out;
    let baseline = ward.file("old.json", &old);
    let since = ["--baseline", text(&baseline)];
    let ran = ward.check(&since).exits(0);
    assert!(ran.out.contains("it stands in the baseline"), "{}", ran.out);
    ward.injure("public.customers");
    ward.check(&since).exits(1);

    let mut other: CheckDocument = serde_json::from_str(&old).expect("a document");
    other.target.system_identifier = Some("1".into());
    let other = serde_json::to_string(&other).expect("a document");
    let other = ward.file("other.json", &other);
    let ran = ward.check(&["--baseline", text(&other)]).exits(1);
    assert!(ran.err.contains("of another cluster"), "{}", ran.err);
}
