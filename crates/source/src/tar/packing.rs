//! How an archive is packed, told by its first bytes, and the reader that unpacks it.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use pgclinic_format::tar::{BLOCK, Header};

use super::gzip::{self, Gzip};
use super::lz4::{self, Lz4};
use super::read_ahead::ReadAheadThread;
use super::zstd::{self, Zstd};
use crate::data_directory::read_full;

/// Bytes read from the file at once.
const STEP: usize = 1 << 20;

/// Frames that hold nothing to unpack and are passed over to find out what follows them.
const SKIPPED_MAX: usize = 1024;

/// Unpacked bytes behind the mark at the end of an archive that are read, so that the checksums
/// behind them are met. Tapes fill their last block with zeros; nobody has blocks as long.
pub(super) const BEHIND_END_MAX: u64 = 64 << 20;

/// What an archive is packed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArchiveCompression {
    Plain,
    Gzip,
    Lz4,
    Zstd,
}

impl ArchiveCompression {
    /// By the first bytes; `None` for what is neither packed nor a tar archive.
    fn of_head(head: &[u8]) -> Option<Self> {
        if head.starts_with(&gzip::MAGIC) {
            return Some(ArchiveCompression::Gzip);
        }
        if head.starts_with(&lz4::MAGIC) || head.starts_with(&lz4::LEGACY_MAGIC) {
            return Some(ArchiveCompression::Lz4);
        }
        if head.starts_with(&zstd::MAGIC) {
            return Some(ArchiveCompression::Zstd);
        }
        // Archives from before POSIX have no magic, but a checksum in their first header.
        let is_header = || {
            let block = head.first_chunk::<BLOCK>();
            let header = block.and_then(|block| Header::parse(block).ok());
            header.is_some_and(|header| !header.name.is_empty())
        };
        (has_ustar(head) || is_header()).then_some(ArchiveCompression::Plain)
    }

    /// Of a file, by its first bytes. LZ4 and zstd share frames that hold nothing; what follows
    /// them tells.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let mut at = 0u64;
        for _ in 0..SKIPPED_MAX {
            let mut head = [0; BLOCK];
            let read = read_full(file, at, &mut head)?;
            let head = head.get(..read).unwrap_or_default();
            let frame = head
                .first_chunk::<8>()
                .filter(|head| lz4::is_skipped(*head));
            let Some([.., a, b, c, d]) = frame else {
                let packing = ArchiveCompression::of_head(head);
                return Ok(packing.filter(|packing| at == 0 || packing.has_frames()));
            };
            let len = u32::from_le_bytes([*a, *b, *c, *d]);
            at = at.saturating_add(8).saturating_add(u64::from(len));
        }
        Ok(None)
    }

    /// The same of what has this path.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        ArchiveCompression::of(&super::open_file(path)?)
    }

    fn has_frames(self) -> bool {
        matches!(self, ArchiveCompression::Lz4 | ArchiveCompression::Zstd)
    }

    /// Of any file that may be compressed: one without the mark of a compression is plain.
    pub(crate) fn of_compressed(head: &[u8]) -> Self {
        let known = ArchiveCompression::of_head(head);
        known.unwrap_or(ArchiveCompression::Plain)
    }

    /// What comes out. Where archives can be read in place, `Plain` ones are not unpacked.
    pub(crate) fn unpack(
        self,
        file: impl Read + Send + 'static,
    ) -> io::Result<Box<dyn Read + Send>> {
        let file = BufReader::with_capacity(STEP, file);
        Ok(match self {
            ArchiveCompression::Plain => Box::new(file),
            ArchiveCompression::Gzip => Box::new(ReadAheadThread::of(Gzip::of(file))?),
            ArchiveCompression::Lz4 => Box::new(ReadAheadThread::of(Lz4::of(file))?),
            ArchiveCompression::Zstd => Box::new(ReadAheadThread::of(Zstd::of(file)?)?),
        })
    }
}

/// The mark of POSIX and GNU in the first header.
pub(super) fn has_ustar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Said of an archive that goes on too long behind its end.
pub(super) fn endless() -> String {
    format!(
        "more than {} MiB stand past its end mark: it was not read to its end, where checksums of what is compressed are",
        BEHIND_END_MAX >> 20
    )
}

/// Said of an archive whose end is broken behind the mark.
pub(super) fn not_to_its_end(error: impl Display) -> String {
    format!("it cannot be decompressed to its end, so that what came of it may be wrong: {error}")
}
