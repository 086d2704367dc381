use std::sync::atomic::{AtomicU64, Ordering};

use pgclinic_format::tar::build_header;
use pgclinic_source::{Result as Read, Source};

use super::*;

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

fn flight() -> Flight {
    Flight::new(Shape {
        build: Build::USUAL,
        layout: Layout::of_major(18).expect("a layout"),
        sums: PageSums::On,
        suspects_max: 10,
    })
}

fn nothing() -> Passed {
    Passed::new("test", &std::env::temp_dir()).expect("a folder")
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
    assert_eq!(
        passed.len("base/5/20001"),
        Ok(1 << 20),
        "what was looked at"
    );
    assert!(!flight.is_whole && flight.sums.is_empty());
    let gaps: Vec<&str> = flight.not_checked.iter().map(|gap| &*gap.what).collect();
    assert_eq!(gaps, ["base/5/20001"]);
}
