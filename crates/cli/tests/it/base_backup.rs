//! Plain base backups: their manifest, their pages, and what was done to them since.

use pgclinic_model::{CheckDocument, Finding, Severity};

use crate::common;

use std::path::{Path, PathBuf};

use common::{check_json, count, files, pgclinic, text, told};
use pgclinic_servers::{Checksums, Scratch, Server, StopMode};
use pgclinic_testkit::{TempCopy, as_primary, copy_of, plain_backup, scratch, seed, server};

/// A primary with one table that nothing else touches, and a place for its backups.
struct Primary {
    server: Server,
    scratch: Scratch,
    copy: TempCopy,
}

impl Primary {
    fn start() -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let server = copy.start_with(&as_primary()).expect("a server");
        Primary {
            server,
            scratch: scratch(),
            copy,
        }
    }

    /// A plain backup with its tablespace beside it.
    fn backup(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let folder = self.scratch.path().join(name);
        plain_backup(&self.copy, &self.server, &folder, arguments);
        folder
    }

    fn value(&self, sql: &str) -> String {
        let mut session = self.server.connect("clinic").expect("a session");
        session.query_value(sql).expect(sql).expect("a value")
    }
}

#[track_caller]
fn only_needs_recovery(folder: &Path) -> CheckDocument {
    let document = check_json(folder, 3);
    assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
    assert_eq!(
        count(&document, Severity::Warning),
        0,
        "{}",
        told(&document)
    );
    assert!(document.needs_recovery);
    assert_eq!(document.target.kind, "base-backup");
    document
}

fn damage(document: &CheckDocument) -> Vec<(&str, &str)> {
    let damage = document.findings.iter();
    let damage = damage.filter(|finding| finding.severity != Severity::Note);
    damage
        .map(|finding| (finding.rule.as_str(), finding.place.path.as_str()))
        .collect()
}

#[track_caller]
fn finding<'a>(document: &'a CheckDocument, rule: &str) -> &'a Finding {
    let found = document.findings.iter().find(|one| one.rule == rule);
    found.unwrap_or_else(|| panic!("no {rule}: {}", told(document)))
}

fn change(folder: &Path, path: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    let file = folder.join(path);
    let mut bytes = std::fs::read(&file).expect("a file");
    edit(&mut bytes);
    std::fs::write(&file, bytes).expect("a file");
}

#[test]
fn a_sound_backup_only_waits_for_its_wal() {
    let mut primary = Primary::start();
    let plain = primary.backup("plain", &[]);
    let wide = primary.backup("wide", &["--manifest-checksums=SHA512"]);
    let unsummed = primary.backup("unsummed", &["--manifest-checksums=NONE"]);
    let bare = primary.backup("bare", &["--wal-method=none"]);
    primary.server.stop(StopMode::Fast).expect("a stop");

    let before = files(&plain);
    let document = only_needs_recovery(&plain);
    assert_eq!(files(&plain), before, "nothing was written");
    let all = told(&document);
    assert!(!all.contains("manifest"), "all was compared: {all}");
    only_needs_recovery(&wide);
    assert!(told(&only_needs_recovery(&unsummed)).contains("checksums=NONE"));
    let without_wal = told(&only_needs_recovery(&bare));
    assert!(
        without_wal.contains("not checked: WAL from "),
        "{without_wal}"
    );

    let words = pgclinic(&["check", text(&plain), "--level", "full"]).exits(3);
    assert!(
        words.out.contains("base backup, PostgreSQL 15"),
        "{}",
        words.out
    );
    let part = pgclinic(&["check", text(&plain), "--database", "clinic"]).exits(3);
    assert!(
        part.out.contains("only a part of the backup"),
        "{}",
        part.out
    );
    pgclinic(&["measure", text(&plain)]).exits(0);
    let page = ["inspect", text(&plain), "--relation", "public.docs"];
    pgclinic(&page).exits(0);
    let to = primary.scratch.path().join("rescued");
    pgclinic(&["salvage", text(&plain), "--to", text(&to)]).exits(0);
}

#[test]
fn what_was_done_to_a_backup_is_told() {
    let mut primary = Primary::start();
    let folder = primary.backup("one", &[]);
    let other = primary.backup("other", &[]);
    let docs = primary.value("SELECT pg_relation_filepath('public.docs')");
    let pruned = primary.value("SELECT pg_relation_filepath('public.pruned')");
    let gone = primary.value("SELECT pg_relation_filepath('public.chains')");
    primary.server.stop(StopMode::Fast).expect("a stop");

    // A byte inside a page, a byte of no page, a file cut, one gone and one too many.
    change(&folder, &docs, |bytes| bytes[8192 + 5000] ^= 0x10);
    change(&folder, "postgresql.conf", |bytes| bytes[0] ^= 1);
    change(&folder, &pruned, |bytes| bytes.truncate(8192));
    std::fs::remove_file(folder.join(&gone)).expect("a file");
    std::fs::write(folder.join("base/notes.txt"), "mind the gap").expect("a file");
    let document = check_json(&folder, 1);
    let mut seen = damage(&document);
    seen.sort_unstable();
    let mut expected = [
        ("backup-file-changed", docs.as_str()),
        ("backup-file-changed", "postgresql.conf"),
        ("backup-file-changed", &pruned),
        ("file-truncated", &pruned),
        ("backup-file-missing", &gone),
        ("missing-file", &gone),
        ("backup-file-extra", "base/notes.txt"),
        ("checksum-mismatch", &docs),
    ];
    expected.sort_unstable();
    assert_eq!(seen, expected, "{}", told(&document));
    let page = finding(&document, "checksum-mismatch");
    let of_docs = document.findings.iter().find(|one| {
        one.rule == "backup-file-changed" && one.place.relation.as_deref() == Some("docs")
    });
    let caused_by = of_docs.and_then(|one| one.caused_by.as_ref());
    assert_eq!(caused_by, Some(&page.id), "the page is the story");
    let missing = finding(&document, "backup-file-missing");
    assert_eq!(missing.place.relation.as_deref(), Some("chains"));

    // A manifest of another backup, and one that somebody edited.
    let manifest = std::fs::read(folder.join("backup_manifest")).expect("a manifest");
    std::fs::write(other.join("backup_manifest"), &manifest).expect("a manifest");
    let document = check_json(&other, 1);
    let told_by = finding(&document, "backup-manifest");
    assert!(
        told_by.message.contains("backup_label of one"),
        "{}",
        told_by.message
    );
    change(&other, "backup_manifest", |bytes| {
        let at = bytes.windows(8).position(|some| some == b"\"Size\": ");
        let digit = &mut bytes[at.expect("a size") + 8];
        *digit = if *digit == b'9' { b'8' } else { b'9' };
    });
    let document = check_json(&other, 1);
    let lines: Vec<&str> = document
        .findings
        .iter()
        .map(|one| one.message.as_str())
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("the last line is not")),
        "{lines:?}"
    );
    change(&other, "backup_manifest", |bytes| bytes.truncate(100));
    let document = check_json(&other, 1);
    let told_by = finding(&document, "backup-manifest");
    assert!(
        told_by.message.starts_with("this is no manifest"),
        "{}",
        told_by.message
    );
}
