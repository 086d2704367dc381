//! A salvage of a hurt table that is larger than `--memory`: the program takes no more than it was
//! given and what it is itself.

use pgclinic_model::document::SalvageReport;

use crate::common;

use std::process::{Command, Stdio};

use common::text;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

const ROWS: u64 = 600_000;
/// What the program, its threads and their buffers take beside `--memory`.
const BESIDE_BYTES: u64 = 48 << 20;
const MEMORY_BYTES: u64 = 64 << 20;

/// The most memory that a process had so far, as long as it is there.
fn high_water(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// All pages have a wrong checksum, so that every row is read again for the keys of lost ones.
#[test]
fn a_hurt_table_takes_no_more_memory_than_was_given() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    session
        .execute(&format!(
            "CREATE TABLE public.large (id int PRIMARY KEY, word text); \
             INSERT INTO public.large SELECT i, repeat(md5(i::text), 6) FROM generate_series(1, {ROWS}) i; CHECKPOINT"
        ))
        .expect("a table");
    let path = session.query_value("SELECT pg_relation_filepath('public.large')");
    let path = copy.pgdata.join(path.expect("a path").expect("a file"));
    running.stop(StopMode::Fast).expect("stopped");
    let mut bytes = std::fs::read(&path).expect("a file");
    assert!(bytes.len() as u64 > 2 * MEMORY_BYTES, "{}", bytes.len());
    for page in bytes.chunks_exact_mut(8192) {
        page[8] ^= 0xFF;
    }
    std::fs::write(&path, bytes).expect("hurt");

    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgclinic"))
        .args(["salvage", text(&copy.pgdata), "--to", text(&out)])
        .args(["--relation", "public.large", "--memory", "64MB"])
        .args(["--no-sync", "--quiet", "--format", "copy"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program");
    let mut peak = 0;
    let status = loop {
        peak = high_water(child.id()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().expect("a process") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(status.code(), Some(1));
    assert!(peak > 0 && peak <= MEMORY_BYTES + BESIDE_BYTES, "{peak}");
    let account = std::fs::read(out.join("salvage.json")).expect("an account");
    let account: SalvageReport = serde_json::from_slice(&account).expect("a document");
    let [table] = account.tables.as_slice() else {
        panic!("{account:?}");
    };
    assert_eq!((table.rows.written, table.rows.lost), (ROWS, 0));
    // Those for which there was room were all found.
    assert!(table.lost_keys.is_empty(), "{:?}", table.lost_keys);
    let mut notes = table.notes.iter();
    assert!(
        notes.any(|note| note.contains("list of lost keys of public.large_pkey is not whole")),
        "{:?}",
        table.notes
    );
    println!("peak memory {} MiB", peak >> 20);
}
