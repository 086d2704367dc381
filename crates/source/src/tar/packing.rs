//! How an archive is packed, told by its first bytes, and the reader that unpacks it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use lz4_flex::frame::FrameDecoder;

use super::ahead::Ahead;

/// Bytes read from the file at once.
const STEP: usize = 1 << 20;

/// What an archive is packed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Lz4,
    Zstd,
}

impl Packing {
    /// By the first bytes; `None` for what is neither packed nor a tar archive.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Packing::Lz4),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            _ if head.get(257..262) == Some(b"ustar") => Some(Packing::Plain),
            _ => None,
        }
    }

    /// Of a file, by its first bytes.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        let mut head = [0; 512];
        let read = super::open_file(path)?.read_at(&mut head, 0)?;
        Ok(Packing::of(head.get(..read).unwrap_or_default()))
    }

    /// What comes out. `Plain` archives are read in place instead.
    pub(crate) fn unpack(self, file: File) -> io::Result<Box<dyn Read + Send>> {
        let file = BufReader::with_capacity(STEP, file);
        Ok(match self {
            Packing::Plain => Box::new(file),
            Packing::Gzip => Box::new(Ahead::of(flate2::bufread::MultiGzDecoder::new(file))?),
            Packing::Lz4 => Box::new(Ahead::of(Frames(FrameDecoder::new(file)))?),
            Packing::Zstd => Box::new(Ahead::of(zstd::Decoder::with_buffer(file)?)?),
        })
    }
}

/// LZ4 frames, one behind the other: the decoder gives nothing at the end of each.
struct Frames(FrameDecoder<BufReader<File>>);

impl Read for Frames {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => self.0.read(buf),
            some => Ok(some),
        }
    }
}
