//! Archives that grow without end, manifests that are none, and how fast packed archives are
//! unpacked.

use pgclinic_model::Severity;

use crate::common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{SmallDisk, count, pgclinic, text, told};
use pgclinic_format::tar::build_header;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{
    Packing, archived, as_primary, copy_of, scratch, seed, server, streamed_backup,
};

const MIB: u64 = 1 << 20;

/// An archive of one file of zeros, which takes next to nothing: a bomb.
fn bomb(folder: &Path, name: &str, bytes: u64) -> PathBuf {
    packed(folder, name, bytes, &[])
}

/// An archive of one file of so many bytes, of which these come first, and zeros behind them.
fn packed(folder: &Path, name: &str, bytes: u64, first: &[u8]) -> PathBuf {
    let plain = folder.join("base.tar");
    let head = build_header(name.as_bytes(), bytes, b'0');
    fs::write(&plain, [&head[..], first].concat()).expect("a file");
    let file = File::options().write(true).open(&plain).expect("a file");
    file.set_len(512 + bytes + 1024).expect("zeros");
    let mut gzip = Command::new("gzip");
    let packed = gzip.args(["-1", "-f"]).arg(&plain).status().expect("gzip");
    assert!(packed.success());
    folder.join("base.tar.gz")
}

/// A 32nd of a disk is left to others: of 65 MiB, all but one are used when that is asked for the
/// first time.
#[test]
fn a_bomb_does_not_fill_the_disk() {
    let Some(disk) = SmallDisk::new("65m") else {
        return;
    };
    let folder = scratch();
    // A catalog's file is kept also where all others only pass by.
    let archive = bomb(folder.path(), "base/5/1259", 100 * MIB);
    for level in ["pages", "structure"] {
        let line = ["check", text(&archive), "--level", level];
        let ran = pgclinic(&[&line[..], &["--spill-to", text(&disk.path)]].concat()).exits(2);
        assert!(ran.err.contains("there is no room in"), "{}", ran.err);
        assert!(
            ran.err.contains("only 1 MiB are left on that disk"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("--spill-to"), "{}", ran.err);
        let left = fs::read_dir(&disk.path).expect("a directory").count();
        assert_eq!(left, 0, "nothing stays behind");
    }
}

#[test]
fn what_only_passes_by_takes_no_disk() {
    let Some(disk) = SmallDisk::new("1m") else {
        return;
    };
    let folder = scratch();
    let archive = folder.path().join("base.tar.gz");
    let line = ["check", text(&archive), "--spill-to", text(&disk.path)];
    // Large objects have the number of a catalog, and no name stands in them.
    for name in ["base/5/16999", "base/5/2613"] {
        bomb(folder.path(), name, 100 * MIB);
        let passed = pgclinic(&[&line[..], &["--level", "pages"]].concat()).exits(2);
        assert!(!passed.err.contains("room"), "{name}: {}", passed.err);
    }
    let unpacked = pgclinic(&line).exits(2);
    assert!(
        unpacked.err.contains("there is no room in"),
        "{}",
        unpacked.err
    );
}

/// What comes out of a packed archive is packed again: here to a sixth, on a disk that has room for
/// a half.
#[test]
fn what_is_unpacked_needs_less_room_than_it_has() {
    let Some(disk) = SmallDisk::new("16m") else {
        return;
    };
    let folder = scratch();
    let check = |content: &[u8]| {
        let bytes = content.len() as u64;
        let archive = packed(folder.path(), "base/5/16999", bytes, content);
        let line = ["check", text(&archive), "--spill-to", text(&disk.path)];
        // It is no cluster.
        pgclinic(&line).exits(2).err
    };
    let rows = (0..1_000_000).map(|number: u32| format!("{number:>9} is the number of a row\n"));
    let rows: Vec<u8> = rows.flat_map(String::into_bytes).collect();
    assert!(rows.len() as u64 > 31 * MIB);
    let err = check(&rows);
    assert!(!err.contains("room"), "{err}");
    let mut state = 1u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let noise: Vec<u8> = (0..18 * MIB).map(|_| noise()).collect();
    let err = check(&noise);
    assert!(err.contains("there is no room in"), "{err}");
    assert!(err.contains("--spill-to"), "{err}");
}

/// The rate holds for what is unpacked before anything is looked at.
#[test]
fn packed_archives_are_unpacked_no_faster_than_asked() {
    let folder = scratch();
    let archive = bomb(folder.path(), "base/5/16999", 6 * MIB);
    let spill = text(folder.path());
    let start = Instant::now();
    let line = ["check", text(&archive), "--spill-to", spill];
    pgclinic(&[&line[..], &["--rate", "4MiB/s"]].concat()).exits(2);
    let took = start.elapsed();
    assert!(took > Duration::from_millis(1200), "{took:?}");
}

/// No waiting for what never comes, no reading of what never ends.
#[test]
fn a_manifest_that_is_no_manifest_is_told_and_not_swallowed() {
    let copy = copy_of(&seed(&server(18), Checksums::On));
    let mut running = copy.start_with(&as_primary()).expect("a server");
    let folder = scratch();
    let backup = folder.path().join("backup");
    streamed_backup(&running, &backup, None);
    running.stop(StopMode::Fast).expect("a stop");
    let archive = archived(&backup, Packing::Zstd);
    let manifest = archive.with_file_name("backup_manifest");
    let check = |level: &str| {
        let line = ["check", text(&archive), "--level", level];
        pgclinic(&[&line[..], &["--format", "json"]].concat())
    }; // As somebody says it who stands in the folder.
    let mut by_name = Command::new(env!("CARGO_BIN_EXE_pgclinic"));
    by_name.current_dir(manifest.parent().expect("a directory"));
    let line = ["check", "base.tar.zst", "--level", "pages"];
    let ran = by_name.args(line).output().expect("the program");
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");

    fs::remove_file(&manifest).expect("a manifest");
    let made = Command::new("mkfifo").arg(&manifest).status();
    assert!(made.expect("mkfifo").success());
    for level in ["pages", "structure"] {
        let document = check(level).exits(3).document();
        assert_eq!(count(&document, Severity::Damage), 0, "{}", told(&document));
    }

    fs::remove_file(&manifest).expect("a FIFO");
    let file = File::create(&manifest).expect("a file");
    file.set_len(256 * MIB + 1).expect("zeros");
    for level in ["pages", "structure"] {
        let lines = told(&check(level).exits(1).document());
        let why =
            "the manifest cannot be read: the file is longer than the limit of 268435456 bytes";
        assert!(lines.contains(why), "{lines}");
    }
}
