//! A destination that fills up: an exit code, no half file under its name, and the same command with `--resume` when there is
//! room.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{files, pgclinic, text};
use pgclinic_rows::Account;
use pgclinic_servers::Checksums;
use pgclinic_testkit::{copy_of, seed, server};

/// A file system in memory of some size, gone on drop.
struct SmallDisk {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl SmallDisk {
    /// Nothing where nobody may mount.
    fn new(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        fs::create_dir(&path).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk {
                _folder: folder,
                path,
            }),
            // A container often may not mount.
            _ => None,
        }
    }

    fn grow(&self, size: &str) {
        let grown = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(&self.path)
            .status();
        assert!(grown.is_ok_and(|status| status.success()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _left = Command::new("umount").arg(&self.path).status();
    }
}

fn account(folder: &Path) -> Account {
    let account = fs::read(folder.join("salvage.json")).expect("an account");
    let mut account: Account = serde_json::from_slice(&account).expect("a document");
    account.elapsed_s = 0.0;
    account
}

/// The files of the tables.
fn tables(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = files(folder);
    found.retain(|path, _| !path.ends_with("salvage.json"));
    found
        .into_iter()
        .map(|(path, bytes)| (path.strip_prefix(folder).unwrap_or(&path).to_owned(), bytes))
        .collect()
}

#[test]
fn a_full_disk_ends_the_work_and_room_lets_it_go_on() {
    let Some(disk) = SmallDisk::new("3m") else {
        return;
    };
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let elsewhere = tempfile::tempdir().expect("a folder");
    let whole = elsewhere.path().join("whole");
    let words = ["--format", "copy", "--database", "clinic"];
    pgclinic(
        &[
            &["salvage", text(&copy.pgdata), "--to", text(&whole)][..],
            &words,
        ]
        .concat(),
    )
    .exits(0);
    let expected = tables(&whole);

    let out = disk.path.join("out");
    let to = ["salvage", text(&copy.pgdata), "--to", text(&out)];
    let full = pgclinic(&[&to[..], &words].concat()).exits(2);
    assert!(full.err.contains("No space left on device"), "{}", full.err);
    let begun = tables(&out);
    assert!(begun.len() > 1, "some tables fit");
    for (path, bytes) in &begun {
        let name = path.to_string_lossy();
        assert!(!name.ends_with(".part"), "{name}");
        if name != "salvage.progress" {
            assert!(expected.get(path) == Some(bytes), "{name}");
        }
    }
    assert!(!out.join("salvage.json").exists());

    disk.grow("256m");
    pgclinic(&[&to[..], &words, &["--resume"]].concat()).exits(0);
    assert!(tables(&out) == expected);
    assert_eq!(account(&out), account(&whole));
}

/// The account that does not fit is no lost work either.
#[test]
fn an_account_that_does_not_fit_can_be_written_later() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let to = [
        "salvage",
        text(&copy.pgdata),
        "--to",
        text(&out),
        "--relation",
        "sales.*",
    ];
    let full = pgclinic(&[&to[..], &["--account", "/dev/full"]].concat()).exits(2);
    assert!(full.err.contains("/dev/full"), "{}", full.err);
    pgclinic(&[&to[..], &["--resume"]].concat()).exits(0);
    assert!(out.join("salvage.json").exists() && !out.join("salvage.progress").exists());
}
