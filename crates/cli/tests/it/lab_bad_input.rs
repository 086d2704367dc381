//! The laboratory where the machine has too little of something.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Ran, SmallDisk, pgclinic, text};

/// Runs the program in a shell of its own, after these commands; nothing where they cannot be
/// carried out.
fn after(commands: &str, arguments: &[&str]) -> Option<Ran> {
    let script = format!("{{ {commands}; }} || exit 99; exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            &script,
            env!("CARGO_BIN_EXE_pgclinic"),
        ])
        .args(arguments)
        .output()
        .ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let exit = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok())?;
    let err = text(output.stderr);
    let cannot = exit == 99 || err.starts_with("unshare:");
    (!cannot).then(|| Ran {
        exit,
        out: text(output.stdout),
        err,
    })
}

/// Whether a cluster is left somewhere below the folder.
fn holds_a_cluster(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == "PG_VERSION" || (is_folder && holds_a_cluster(&entry.path()))
    })
}

#[test]
fn too_little_disk_is_said_before_anything_is_begun() {
    let Some(disk) = SmallDisk::new("64m") else {
        return;
    };
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("run");
    let line = ["lab", "run", "duplicate-inserts", "--scale", "smallest"];
    let places = ["--into", text(&folder), "--data-folder", text(&disk.path)];
    let ran = pgclinic(&[&line[..], &places].concat()).exits(2);
    assert!(
        ran.err.contains("MB of disk") && ran.err.contains("has 64 MB free"),
        "{}",
        ran.err
    );
    assert!(!folder.exists(), "a refused plan leaves no directory");

    // The folders that are compared are looked at, not only the one of the laboratory.
    let line = ["lab", "run", "filesystem", "--scale", "smallest"];
    let places = ["--into", text(&folder), "--folder", text(&disk.path)];
    let ran = pgclinic(&[&line[..], &places].concat()).exits(2);
    let words = format!("{} has 64 MB free", disk.path.display());
    assert!(ran.err.contains(&words), "{}", ran.err);
}

/// A table that fits and one that does not.
const FILLS: &str = r#"
name = "fills"
question = "What happens when the disk is full?"
blocks = 1
[[arm]]
name = "only"
[[axis]]
name = "rows"
values = [10, 3000000]
[run]
sql = "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, {rows})"
[[metric]]
name = "run_s"
[cost]
disk_mb = 1
"#;

#[test]
fn a_disk_that_fills_during_a_run_fails_that_run_alone() {
    let Some(disk) = SmallDisk::new("1000m") else {
        return;
    };
    let home = tempfile::tempdir().expect("a directory");
    let (file, folder) = (home.path().join("fills.toml"), home.path().join("run"));
    fs::write(&file, FILLS).expect("a file");
    let line = ["lab", "run", text(&file), "--pg", "15", "--quiet"];
    let places = ["--into", text(&folder), "--data-folder", text(&disk.path)];
    let ran = pgclinic(&[&line[..], &places].concat()).exits(3);
    // Lines are broken where they would be too long.
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    let told = words.join(" ");
    assert!(
        told.contains("2 of 4 runs done, 2 failed") && told.contains("No space left on device"),
        "{}",
        ran.out
    );
    let log = fs::read_to_string(folder.join("runs/b01-only-rows_3000000/server.log"));
    assert!(log.is_ok_and(|log| log.contains("No space left on device")));
    assert!(!holds_a_cluster(&disk.path), "the disk is free again");
}

/// A load of many clients.
const MANY: &str = r#"
name = "many"
question = "How many may there be?"
blocks = 1
[[arm]]
name = "only"
[load]
script = "SELECT 1;"
clients = "150"
seconds = 1
[[metric]]
name = "tps"
[cost]
disk_mb = 1
"#;

#[test]
fn the_hard_limit_of_open_files_decides_and_not_the_soft_one() {
    let home = tempfile::tempdir().expect("a directory");
    let (file, folder) = (home.path().join("many.toml"), home.path().join("run"));
    fs::write(&file, MANY).expect("a file");
    let line = [
        "lab",
        "run",
        text(&file),
        "--pg",
        "15",
        "--into",
        text(&folder),
    ];
    if let Some(ran) = after("ulimit -n 300", &line) {
        let ran = ran.exits(2);
        assert!(
            ran.err
                .contains("154 connections and this process may open 300 files at most"),
            "{}",
            ran.err
        );
        assert!(!folder.exists());
    }
    if let Some(ran) = after("ulimit -Sn 300 && ulimit -Hn 4096", &line) {
        let ran = ran.exits(0);
        assert!(ran.out.contains("2 of 2 runs done"), "{}", ran.out);
    }
}

#[test]
fn too_little_memory_is_said_before_anything_is_begun() {
    let home = tempfile::tempdir().expect("a directory");
    let (memory, folder) = (home.path().join("meminfo"), home.path().join("run"));
    fs::write(&memory, "MemTotal: 65536 kB\nMemAvailable: 16384 kB\n").expect("a file");
    let commands = format!("mount --bind {} /proc/meminfo", memory.display());
    let into = ["--into", text(&folder)];
    let line = ["lab", "run", "duplicate-inserts", "--scale", "smallest"];
    let Some(ran) = after(&commands, &[&line[..], &into].concat()) else {
        return;
    };
    let ran = ran.exits(2);
    assert!(
        ran.err.contains("MB of memory and 16 MB are available"),
        "{}",
        ran.err
    );
    assert!(!folder.exists());
}
