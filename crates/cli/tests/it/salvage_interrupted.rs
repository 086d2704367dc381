//! Ctrl-C in the middle of a salvage: exit code 130, what is whole is kept, nothing half has its
//! final name, and `--resume` goes on.

use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{files, pgclinic, text};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{seed, server};

fn account(folder: &Path) -> SalvageReport {
    let account = fs::read(folder.join("salvage.json")).expect("an account");
    let mut account: SalvageReport = serde_json::from_slice(&account).expect("a document");
    account.elapsed_s = 0.0;
    account.destination = None;
    account
}

/// The files of the databases.
fn of_databases(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let found = files(folder).into_iter();
    let within = found.map(|(path, bytes)| {
        let path = path.strip_prefix(folder).unwrap_or(&path);
        (path.to_owned(), bytes)
    });
    within
        .filter(|(path, _)| path.components().count() > 1)
        .collect()
}

/// Tables that are noted as whole.
fn finished(folder: &Path) -> usize {
    let noted = fs::read_to_string(folder.join("salvage.progress")).unwrap_or_default();
    noted.lines().count().saturating_sub(1)
}

#[test]
fn what_is_whole_is_kept_and_gone_on_with() {
    let pgdata = seed(&server(15), Checksums::On).pgdata;
    let folder = tempfile::tempdir().expect("a directory");
    let (whole, out) = (folder.path().join("whole"), folder.path().join("out"));
    let words = ["--format", "copy", "--database", "clinic"];
    let to = ["salvage", text(&pgdata), "--to", text(&whole)];
    pgclinic(&[&to[..], &words].concat()).exits(0);
    let expected = of_databases(&whole);

    // So slow that it would take a minute for all of it.
    let to = ["salvage", text(&pgdata), "--to", text(&out)];
    let mut slow = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    slow.args(to).args(words).args(["--rate", "1MB/s"]);
    let slow = slow.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = slow.spawn().expect("the program");
    while finished(&out) < 2 {
        let ended = child.try_wait().expect("asked");
        assert!(
            ended.is_none(),
            "it ended before two tables were whole: {ended:?}"
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
    let ended = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stdout);
    let error = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}{error}");
    assert!(said.starts_with("INTERRUPTED"), "{said}");

    let begun = of_databases(&out);
    assert!(
        finished(&out) >= 2 && begun.len() < expected.len(),
        "{:?}",
        begun.keys()
    );
    for (path, bytes) in &begun {
        assert!(expected.get(path) == Some(bytes), "{}", path.display());
    }
    let first = account(&out);
    assert!(first.interrupted && first.outcome == Outcome::Incomplete);
    let page = fs::read_to_string(out.join("salvage.html")).expect("a page");
    assert!(page.contains("INTERRUPTED"));

    pgclinic(&[&to[..], &words, &["--resume"]].concat()).exits(0);
    assert!(of_databases(&out) == expected);
    assert_eq!(account(&out), account(&whole));
    assert!(!out.join("salvage.progress").exists());
    let page = fs::read_to_string(out.join("salvage.html")).expect("a page");
    assert!(!page.contains("INTERRUPTED") && page.contains("WHOLE"));
}
