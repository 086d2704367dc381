use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pgclinic_format::tar::build_header;
use pgclinic_model::Selection;
use pgclinic_source::{Clock, Memory, Result as Read, Source};
use pgclinic_spill::MemoryPlan;

use super::*;
use crate::walker::{empty_page, page_that_asks};

/// Nobody interrupts before so many bytes were looked at.
struct Until(u64, AtomicU64);

impl Until {
    fn bytes(bytes: u64) -> Self {
        Until(bytes, AtomicU64::new(0))
    }
}

impl Progress for Until {
    fn expect(&self, _bytes: u64) {}

    fn advance(&self, bytes: u64) {
        self.1.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

/// One archive of files of zeros, made as it is read.
struct Zeros {
    /// What is left of the archive: headers, and zeros between them, the next one last.
    left: Vec<(Vec<u8>, u64)>,
    is_open: bool,
    read: u64,
}

impl Zeros {
    fn of(files: &[(&str, u64)]) -> Self {
        let mut left = vec![(Vec::new(), 1024)];
        left.extend(files.iter().rev().map(|(name, bytes)| {
            let header = build_header(name.as_bytes(), *bytes, b'0').to_vec();
            (header, bytes.next_multiple_of(512))
        }));
        Zeros {
            left,
            is_open: false,
            read: 0,
        }
    }
}

impl Archives for Zeros {
    fn next_archive(&mut self) -> Read<Option<String>> {
        let is_first = !std::mem::replace(&mut self.is_open, true);
        Ok(is_first.then(String::new))
    }

    fn read(&mut self, buf: &mut [u8]) -> Read<usize> {
        let Some((header, zeros)) = self.left.last_mut() else {
            return Ok(0);
        };
        let count = match header.len() {
            0 => buf.len().min(usize::try_from(*zeros).unwrap_or(usize::MAX)),
            head => buf.len().min(head),
        };
        let room = &mut buf[..count];
        if header.is_empty() {
            room.fill(0);
            *zeros -= count as u64;
        } else {
            room.copy_from_slice(&header[..count]);
            header.drain(..count);
        }
        if header.is_empty() && *zeros == 0 {
            self.left.pop();
        }
        self.read += count as u64;
        Ok(count)
    }
}

fn flight() -> StreamCheck {
    StreamCheck::new(Shape {
        build: Build::USUAL,
        layout: Layout::of_major(18).expect("a layout"),
        sums: PageSums::On,
        suspects_max: 10,
    })
}

fn nothing() -> StreamedBackup {
    StreamedBackup::new("test", &std::env::temp_dir()).expect("a directory")
}

fn crc(_: &str) -> Option<Algorithm> {
    Some(Algorithm::Crc32c)
}

#[test]
fn files_of_relations_are_known_by_their_folders() {
    for path in [
        "global/1262",
        "base/5/16384.1",
        "pg_tblspc/16385/PG_18_202506291/5/16390_vm",
    ] {
        assert!(relation_file(path).is_some(), "{path}");
    }
    for path in [
        "global/pg_control",
        "pg_xact/0000",
        "base/pgsql_tmp/1",
        "16384",
        "log/1",
        "base/5/t3_16384",
    ] {
        assert!(relation_file(path).is_none(), "{path}");
    }
}

#[test]
fn what_comes_last_is_kept_after_any_number_of_small_files() {
    let mut flight = flight();
    flight.small_relations.left = 20_000;
    flight.small_others.left = 2000;
    let files = [
        ("base/5/20001", 8192),
        ("base/5/20002", 8192),
        ("base/5/20003", 8192),
        ("log/a", 1500),
        ("log/b", 1500),
        ("base/5/1259", 8192),
        ("base/5/pg_filenode.map", 512),
        ("base/5/PG_VERSION", 3),
        ("PG_VERSION", 3),
        ("backup_label", 200),
        ("backup_manifest", 3 << 20),
        ("global/pg_control", 8192),
    ];
    let mut passed = nothing();
    let mut stream = TarStream::new(Zeros::of(&files));
    let until = Until::bytes(u64::MAX);
    let watched = flight.watch(&mut stream, &crc, &mut passed, &until);
    assert_eq!(watched, Ok(()));
    assert!(flight.is_whole && flight.not_checked.is_empty());
    let gone: Vec<&str> = files
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| !passed.is_kept(path))
        .collect();
    assert_eq!(gone, ["base/5/20003", "log/b"]);
    assert_eq!(flight.sums.len(), files.len(), "all of them are summed");
}

#[test]
fn large_objects_and_what_lies_about_its_length_only_pass_by() {
    let files = [
        ("base/5/2613", 2 << 20),
        ("base/5/2683", 2 << 20),
        ("base/5/2619", 2 << 20),
        ("backup_label", 1 << 20),
        ("base/5/pg_filenode.map", 1 << 20),
    ];
    let (mut flight, mut passed) = (flight(), nothing());
    let mut stream = TarStream::new(Zeros::of(&files));
    let until = Until::bytes(u64::MAX);
    let watched = flight.watch(&mut stream, &crc, &mut passed, &until);
    assert_eq!(watched, Ok(()));
    let kept: Vec<&str> = files
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| passed.is_kept(path))
        .collect();
    assert_eq!(kept, ["base/5/2619"]);
    assert_eq!(passed.kept_bytes(), 2 << 20);
}

#[test]
fn an_interruption_is_heard_inside_a_file() {
    let (mut flight, mut passed) = (flight(), nothing());
    let mut stream = TarStream::new(Zeros::of(&[("base/5/20001", 1 << 30)]));
    let until = Until::bytes(1 << 20);
    let watched = flight.watch(&mut stream, &crc, &mut passed, &until);
    assert_eq!(watched, Ok(()));
    let read = stream.into_archives().read;
    assert!(read < 2 << 20, "{read} bytes were read");
    assert_eq!(passed.len("base/5/20001"), Ok(1 << 20), "what was examined");
    assert!(!flight.is_whole && flight.sums.is_empty());
    let gaps: Vec<&str> = flight.not_checked.iter().map(|gap| &*gap.what).collect();
    assert_eq!(gaps, ["base/5/20001"]);
}

/// One archive in memory.
struct Stored {
    bytes: Vec<u8>,
    read: usize,
    is_open: bool,
}

impl Stored {
    fn of(files: &[(&str, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        for (name, content) in files {
            bytes.extend(build_header(name.as_bytes(), content.len() as u64, b'0'));
            bytes.extend(*content);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        Stored {
            bytes,
            read: 0,
            is_open: false,
        }
    }
}

impl Archives for Stored {
    fn next_archive(&mut self) -> Read<Option<String>> {
        let is_first = !std::mem::replace(&mut self.is_open, true);
        Ok(is_first.then(String::new))
    }

    fn read(&mut self, buf: &mut [u8]) -> Read<usize> {
        let rest = &self.bytes[self.read..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {}
}

const TABLE: &str = "base/5/16384";

/// Forty pages of a table: a check fails on block 3, and block 35 has its pd_lower beyond its
/// pd_upper.
fn with_a_page_that_asks() -> Vec<u8> {
    let mut pages = vec![empty_page(); 40];
    pages[3] = page_that_asks();
    pages[35][12..14].copy_from_slice(&8190u16.to_le_bytes());
    pages[35][14..16].copy_from_slice(&8000u16.to_le_bytes());
    pages.concat()
}

/// A flight that has seen them, and keeps no small tables.
fn flown(table: &[u8]) -> (StreamCheck, StreamedBackup) {
    let (mut flight, mut passed) = (flight(), nothing());
    flight.shape.sums = PageSums::Off;
    flight.small_relations.left = 0;
    let files: [(&str, &[u8]); 3] = [
        ("PG_VERSION", b"18\n"),
        ("base/5/PG_VERSION", b"18\n"),
        (TABLE, table),
    ];
    let mut stream = TarStream::new(Stored::of(&files));
    let watched = flight.watch(&mut stream, &crc, &mut passed, &Until::bytes(u64::MAX));
    assert_eq!(watched, Ok(()));
    (flight, passed)
}

fn internal(gaps: &[NotChecked]) -> Vec<&NotChecked> {
    let gaps = gaps.iter();
    gaps.filter(|gap| gap.what.starts_with("internal: "))
        .collect()
}

#[test]
fn a_page_on_which_a_check_fails_is_kept_and_the_others_are_examined() {
    let table = with_a_page_that_asks();
    let (mut flight, mut passed) = flown(&table);
    let blocks = |flight: &StreamCheck| -> Vec<u32> {
        flight
            .suspects
            .iter()
            .map(|suspect| suspect.block)
            .collect()
    };
    assert_eq!(blocks(&flight), [3, 35]);
    assert_eq!(flight.pages_as_zeros, 38);
    assert_eq!(flight.sums.len(), 3, "its bytes are summed all the same");
    let told = internal(&flight.not_checked);
    let [gap] = told.as_slice() else {
        panic!("one page failed, not {told:?}");
    };
    assert_eq!(gap.what, "internal: block 3 of base/5/16384");
    assert!(gap.why.contains("block 3 asked for it") && !gap.inherent);
    let mut page = vec![0; 8192];
    passed.read_at(TABLE, 3 * 8192, &mut page).expect("a page");
    assert_eq!(page, page_that_asks());
    let server = Memory::new("server").with(TABLE, table.clone());
    look_again(&mut flight, &mut passed, Ok(&server), &Still);
    assert_eq!(blocks(&flight), [3, 35], "they are so still");
}

#[test]
fn what_failed_on_its_way_leaves_the_document_incomplete() {
    let (flight, passed) = flown(&with_a_page_that_asks());
    let options = CheckOptions {
        level: Level::Pages,
        threads: NonZeroUsize::MIN,
        evidence: 0,
        selection: Selection::default(),
        spec: "a backup".into(),
        memory: MemoryPlan::default(),
        spill_folder: std::env::temp_dir(),
        since: None,
    };
    let judged = flight.judge(
        Arc::new(passed),
        &options,
        &Until::bytes(u64::MAX),
        |opening| opening,
    );
    let document = judged.expect("a cluster").expect("the right sizes");
    assert!(document.coverage.is_balanced(), "{:?}", document.coverage);
    let told = internal(&document.coverage.not_checked);
    let whats: Vec<&str> = told.iter().map(|gap| &*gap.what).collect();
    assert_eq!(
        whats,
        ["internal: block 3 of base/5/16384"],
        "reported once"
    );
    assert_eq!(document.coverage.bytes_skipped, 8192);
    let found = document.findings.iter();
    let found: Vec<_> = found.map(|own| (&*own.rule, own.place.block)).collect();
    assert!(
        found.contains(&("lower-beyond-upper", Some(35))),
        "{found:?}"
    );
}

#[test]
fn a_table_that_is_given_up_counts_as_skipped() {
    let mut pages = vec![empty_page(); 40];
    pages[3..30].fill(page_that_asks());
    let (flight, _) = flown(&pages.concat());
    assert_eq!(internal(&flight.not_checked).len(), 16);
    // Fifteen are kept, and nobody examined what comes from the sixteenth on.
    assert_eq!(flight.suspects_lost + flight.suspects.len() as u64, 15);
    assert_eq!(flight.unexamined_bytes, (40 - 18) * 8192);
}
