//! The reports of one cluster in one directory: their links to each other, and their length. The
//! cluster is the one of the demonstration, so that no server is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{pgclinic, text};

/// Damage of three kinds, in three tables.
const INJURIES: [(&str, &str); 3] = [
    ("zeroed-sector", "public.orders"),
    ("page-checksum", "public.customers"),
    ("line-pointer-dead", "public.documents"),
];
/// What a page of a cluster of 8 MiB may take at most; one of 100 MiB has not many times as much.
const PAGE_BYTES_MAX: u64 = 1_000_000;

/// The reports of one damaged cluster in one directory, and the rows that were salvaged beside
/// them.
pub(crate) struct Reports {
    home: tempfile::TempDir,
}

impl Reports {
    /// The pages, apart from that of the salvage.
    pub(crate) const NAMES: [&str; 5] = ["check", "measure", "inspect", "diff", "heal"];

    pub(crate) fn new() -> Self {
        let reports = Reports {
            home: tempfile::tempdir().expect("a directory"),
        };
        let demo = reports.home.path().join("demo");
        pgclinic(&["demo", "--to", text(&demo)]).exits(0);
        let (cluster, sound) = (demo.join("shop"), reports.home.path().join("sound"));
        let copied = Command::new("cp")
            .arg("-a")
            .args([&cluster, &sound])
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        for (injury, relation) in INJURIES {
            let journal = reports.home.path().join(injury);
            let injure = ["injure", text(&cluster), "--injury", injury];
            let place = ["--relation", relation, "--journal", text(&journal)];
            pgclinic(&[&injure[..], &place].concat()).exits(0);
        }
        let target = text(&cluster);
        pgclinic(&[
            "salvage",
            target,
            "--to",
            text(&reports.home.path().join("rows")),
        ])
        .exits(1);
        let check = [
            "check",
            target,
            "--level",
            "full",
            "--evidence",
            "5",
            "--with",
            "measure",
        ];
        reports.page("check", &check);
        reports.page("measure", &["measure", target]);
        let inspect = [
            "inspect",
            target,
            "--relation",
            "public.orders",
            "--block",
            "19",
        ];
        reports.page("inspect", &inspect);
        reports.page("diff", &["diff", target, text(&sound)]);
        reports.page("heal", &["heal", target]);
        reports
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn page(&self, name: &str, words: &[&str]) {
        let page = self.path(name);
        let output = ["--format", "html", "--output", text(&page)];
        let ran = pgclinic(&[words, &output].concat());
        assert!(page.exists(), "{name}: {}", ran.err);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(format!("{name}.html"))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a page")
    }
}

#[test]
fn a_page_leads_to_the_reports_of_its_cluster_beside_it() {
    let reports = Reports::new();
    let check = reports.read("check");
    assert!(check.contains("<a href=\"rows/salvage.html\">rows/salvage.html</a>"));
    let inspect = reports.read("inspect");
    for name in ["check", "measure"] {
        let link = format!("<a href=\"{name}.html\">{name}.html</a>");
        assert!(inspect.contains(&link), "{link}");
    }
    // The page of a directory leads to what lies above it.
    let target = reports.home.path().join("demo/shop");
    let rows = reports.home.path().join("rows again");
    pgclinic(&["salvage", text(&target), "--to", text(&rows)]).exits(1);
    let salvaged = fs::read_to_string(rows.join("salvage.html")).expect("a page");
    assert!(salvaged.contains("<a href=\"../check.html\">../check.html</a>"));
    reports.page("check", &["check", text(&target)]);
    assert!(
        reports
            .read("check")
            .contains("href=\"rows%20again/salvage.html\"")
    );
    // Another cluster is none of its business, and pseudonyms lead nowhere.
    let sound = reports.home.path().join("sound");
    reports.page("sound", &["check", text(&sound)]);
    assert!(!reports.read("sound").contains("href=\"measure.html\""));
    reports.page("redacted", &["check", text(&target), "--redact"]);
    assert!(!reports.read("redacted").contains("Reports beside this one"));
}

#[test]
fn no_page_is_long_to_load() {
    let reports = Reports::new();
    for name in Reports::NAMES {
        let bytes = fs::metadata(reports.path(name)).expect("a page").len();
        assert!(bytes < PAGE_BYTES_MAX, "{name} has {bytes} bytes");
    }
}
