//! What reading a folder beside a server leaves in the system's page cache: what was there, and
//! nothing else.
//!
//! Where the file system cannot tell what is in memory (a file system in memory among them),
//! nothing is compared.

use std::fs::{self, File};
use std::io::IoSliceMut;
use std::path::Path;

use pgclinic_source::{DataDirectory, Range, Source};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

const PIECE: usize = 256 << 10;
const PIECES: usize = 12;
const LEN: usize = PIECE * PIECES;
const NAME: &str = "16384";

/// A file on a disk, none of it in memory.
struct Cold {
    folder: tempfile::TempDir,
    file: File,
}

impl Cold {
    /// Nothing where the system does not tell, or does not let go.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join(NAME);
        let bytes: Vec<u8> = (0..LEN).map(|at| (at / 7) as u8).collect();
        fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        // Looking at a page must not bring its neighbours in.
        fadvise(&file, 0, None, Advice::Random).unwrap();
        let cold = Cold { folder, file };
        cold.evict();
        let told = (0..PIECES).all(|piece| cold.is_there(piece) == Some(false));
        cold.evict();
        told.then_some(cold)
    }

    /// What is on its way into memory does not go out: it must have come before.
    fn evict(&self) {
        self.touch(0..PIECES);
        fadvise(&self.file, 0, None, Advice::DontNeed).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether a page in the middle of the piece is in memory, if the system tells.
    fn is_there(&self, piece: usize) -> Option<bool> {
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        let at = (piece * PIECE + PIECE / 2) as u64;
        match preadv2(&self.file, &mut into, at, ReadWriteFlags::NOWAIT) {
            Ok(_) => Some(true),
            Err(Errno::AGAIN) => Some(false),
            Err(_) => None,
        }
    }

    /// Pieces that are in memory.
    fn warm(&self) -> Vec<usize> {
        let pieces = 0..PIECES;
        pieces
            .filter(|piece| self.is_there(*piece) == Some(true))
            .collect()
    }

    /// Somebody else works with these pieces.
    fn touch(&self, pieces: std::ops::Range<usize>) {
        let file = File::open(self.path().join(NAME)).unwrap();
        fadvise(&file, 0, None, Advice::Random).unwrap();
        let mut bytes = vec![0; PIECE];
        for piece in pieces {
            let at = (piece * PIECE) as u64;
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, at).unwrap();
        }
    }
}

/// Reads all of it, as a check does.
fn read(source: &dyn Source) {
    let mut bytes = vec![0; PIECE];
    let range = |piece: usize| Range {
        path: NAME.into(),
        offset: (piece * PIECE) as u64,
        len: (2 * PIECE) as u64,
    };
    for piece in 0..PIECES {
        // Some is asked for ahead, some is not.
        if piece % 4 == 0 {
            source.prefetch(&[range(piece)]);
        }
        let at = (piece * PIECE) as u64;
        assert_eq!(source.read_at(NAME, at, &mut bytes), Ok(PIECE));
    }
}

/// The system takes what it is told as advice, and now and then another processor still holds a
/// page: what is looked for must be seen in one of ten attempts.
fn is_seen(attempt: impl Fn(&Cold) -> bool) -> bool {
    (0..10).any(|_| Cold::new().is_none_or(|cold| attempt(&cold)))
}

fn read_beside_a_server(cold: &Cold) {
    read(&DataDirectory::open_beside_a_server(cold.path()).unwrap());
}

#[test]
fn what_reading_brings_in_goes_out_again() {
    assert!(is_seen(|cold| {
        read_beside_a_server(cold);
        let is_left_out = cold.warm().is_empty();
        // The same without a server beside it stays, or this test would see nothing.
        read(&DataDirectory::open(cold.path()).unwrap());
        is_left_out && cold.warm().len() == PIECES
    }));
}

#[test]
fn what_was_there_stays() {
    assert!(is_seen(|cold| {
        cold.touch(0..PIECES);
        read_beside_a_server(cold);
        cold.warm().len() == PIECES
    }));
}

#[test]
fn of_a_file_that_is_partly_there_only_the_rest_goes_out() {
    assert!(is_seen(|cold| {
        cold.touch(3..7);
        read_beside_a_server(cold);
        cold.warm() == [3, 4, 5, 6]
    }));
}
