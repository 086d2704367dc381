//! Bytes that are put aside in a temporary file without a name, and read again piece by piece.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::folder::nameless_file;

/// Bytes that are gathered before they are written, and read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Where some bytes stand in a spool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Of the first.
    pub start: u64,
    /// How many.
    pub len: u64,
}

/// A file that only grows. There is none before the first bytes come.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    tail: Mutex<Tail>,
}

#[derive(Debug, Default)]
struct Tail {
    file: Option<File>,
    written: u64,
    /// Not written yet.
    pending: Vec<u8>,
}

impl Spool {
    /// A spool whose file will be in this directory.
    pub fn new(directory: &Path) -> Self {
        Spool {
            directory: directory.to_owned(),
            tail: Mutex::default(),
        }
    }

    /// Adds bytes; what comes next stands right after them.
    ///
    /// # Errors
    ///
    /// What the directory says, with its name. Nothing was added then.
    pub fn append(&self, bytes: &[u8]) -> io::Result<Span> {
        let mut tail = self.tail();
        if tail.pending.len() >= PIECE_BYTES {
            self.write(&mut tail)?;
        }
        let start = tail.end();
        tail.pending.extend_from_slice(bytes);
        Ok(Span {
            start,
            len: u64::try_from(bytes.len()).unwrap_or(0),
        })
    }

    /// Where the next bytes will stand.
    pub fn end(&self) -> u64 {
        self.tail().end()
    }

    /// Gives bytes back in pieces of 64 KiB; the first error of the taker ends it.
    ///
    /// # Errors
    ///
    /// What the directory says, or the taker.
    pub fn each_piece(
        &self,
        span: Span,
        give: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut piece = Vec::new();
        let (mut at, end) = (span.start, span.start.saturating_add(span.len));
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(PIECE_BYTES);
            piece.resize(wanted.min(PIECE_BYTES), 0);
            self.read(at, &mut piece)?;
            give(&piece)?;
            at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// All bytes at once.
    ///
    /// # Errors
    ///
    /// What the directory says.
    pub fn bytes(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(span.len).unwrap_or(0)];
        self.read(span.start, &mut bytes)?;
        Ok(bytes)
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut tail = self.tail();
        if !tail.pending.is_empty() {
            self.write(&mut tail)?;
        }
        match &tail.file {
            Some(file) => file.read_exact_at(bytes, start).map_err(|error| {
                let directory = self.directory.display();
                let why = format!("cannot read back a temporary file in {directory}: {error}");
                io::Error::new(error.kind(), why)
            }),
            None if bytes.is_empty() => Ok(()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write(&self, tail: &mut Tail) -> io::Result<()> {
        if tail.file.is_none() {
            tail.file = Some(nameless_file(&self.directory)?);
        }
        let Some(file) = &tail.file else {
            return Ok(());
        };
        file.write_all_at(&tail.pending, tail.written)
            .map_err(|error| {
                let directory = self.directory.display();
                let why = format!("cannot write a temporary file in {directory}: {error}");
                io::Error::new(error.kind(), why)
            })?;
        tail.written = tail.end();
        tail.pending.clear();
        Ok(())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn end(&self) -> u64 {
        let pending = u64::try_from(self.pending.len()).unwrap_or(0);
        self.written.saturating_add(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_aside_comes_back() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let spool = Spool::new(directory.path());
        let long: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let first = spool.append(b"first")?;
        let second = spool.append(&long)?;
        let third = spool.append(b"third")?;
        assert_eq!(
            (second.start, third.start, spool.end()),
            (5, 200_005, 200_010)
        );
        assert_eq!(spool.bytes(first)?, b"first");
        let (mut whole, mut pieces) = (Vec::new(), 0);
        spool.each_piece(second, &mut |piece| {
            whole.extend_from_slice(piece);
            pieces += 1;
            Ok(())
        })?;
        assert!(whole == long && pieces == 4, "{pieces}");
        assert_eq!(spool.bytes(spool.append(b"later")?)?, b"later");
        assert_eq!(spool.bytes(third)?, b"third");
        Ok(())
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_when_it_is_needed() {
        let spool = Spool::new(Path::new("/var/tmp/no/such/directory"));
        let span = spool.append(b"held in memory").expect("no file yet");
        let why = spool.bytes(span).expect_err("there is no directory");
        assert!(
            why.to_string().contains("/var/tmp/no/such/directory"),
            "{why}"
        );
    }
}
