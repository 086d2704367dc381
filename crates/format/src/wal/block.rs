//! What a record says of a block: which one, its image, its data.
//!
//! ```text
//! | id | fork and flags | data length u16 | [image header 5, hole length u16] | [file 12] | block u32 |
//! image header: | length u16 | hole offset u16 | flags u8 |
//! ```
//!
//! Truth: `src/include/access/xlogrecord.h`, `RestoreBlockImage` in
//! `src/backend/access/transam/xlogreader.c`.

use serde::{Deserialize, Serialize};

use crate::bytes::{u16_at, u32_at};
use crate::datum::DecompressError;
use crate::types::{BlockNo, Fork, Oid};
use crate::wal::record::RecordFault;

/// `XLR_MAX_BLOCK_ID`.
pub(crate) const BLOCK_ID_MAX: u8 = 32;
const FORK_MASK: u8 = 0x0F;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const WILL_INIT: u8 = 0x40;
const SAME_REL: u8 = 0x80;

/// `RelFileLocator`: the files of a relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FileNumber {
    /// OID of the tablespace: `pg_default`, `pg_global`, or another.
    pub tablespace: Oid,
    /// OID of the database; 0 for shared relations.
    pub database: Oid,
    /// Number in the files' names.
    pub filenode: Oid,
}

impl FileNumber {
    /// Three numbers, 12 bytes.
    #[inline]
    pub(crate) fn at(bytes: &[u8], at: usize) -> Option<Self> {
        Some(FileNumber {
            tablespace: u32_at(bytes, at)?,
            database: u32_at(bytes, at.checked_add(4)?)?,
            filenode: u32_at(bytes, at.checked_add(8)?)?,
        })
    }
}

/// A fork by the number that WAL gives it.
#[inline]
pub(crate) fn fork_of_number(number: u32) -> Option<Fork> {
    match number {
        0 => Some(Fork::Main),
        1 => Some(Fork::Fsm),
        2 => Some(Fork::Vm),
        3 => Some(Fork::Init),
        _ => None,
    }
}

/// How an image is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// As it is.
    None,
    /// PostgreSQL's own.
    Pglz,
    /// LZ4, from 15 on.
    Lz4,
    /// Zstandard, from 15 on.
    Zstd,
}

/// The flags of an image, which 15 numbered anew.
struct ImageFlags {
    has_hole: u8,
    apply: u8,
    pglz: u8,
    lz4: u8,
    zstd: u8,
}

const FLAGS_13: ImageFlags = ImageFlags {
    has_hole: 1,
    apply: 4,
    pglz: 2,
    lz4: 0,
    zstd: 0,
};
const FLAGS_15: ImageFlags = ImageFlags {
    has_hole: 1,
    apply: 2,
    pglz: 4,
    lz4: 8,
    zstd: 16,
};

fn flags_of(major: u16) -> &'static ImageFlags {
    if major >= 15 { &FLAGS_15 } else { &FLAGS_13 }
}

/// The image of a whole page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image<'a> {
    /// The bytes as they are stored; nothing of a record that is too long to be kept.
    pub bytes: &'a [u8],
    /// Where bytes of zero were left out.
    pub hole_offset: u16,
    /// How many.
    pub hole_bytes: u16,
    /// How the rest is packed.
    pub compression: Compression,
    /// Replay puts it into the page; otherwise it is there to compare with.
    pub apply: bool,
    stored: u16,
}

impl Image<'_> {
    /// The page of `block_bytes`, whose checksum is the one that was valid before the change.
    pub fn page(&self, block_bytes: usize) -> Result<Vec<u8>, DecompressError> {
        let hole = usize::from(self.hole_bytes);
        let raw = block_bytes
            .checked_sub(hole)
            .ok_or(DecompressError::WrongLength)?;
        let mut page = match self.compression {
            Compression::None => self.bytes.to_vec(),
            Compression::Pglz => crate::datum::decompress(0, self.bytes, raw)?,
            Compression::Lz4 => crate::datum::decompress(1, self.bytes, raw)?,
            Compression::Zstd => zstandard(self.bytes, raw)?,
        };
        let at = usize::from(self.hole_offset);
        if page.len() != raw || at > raw {
            return Err(DecompressError::WrongLength);
        }
        page.splice(at..at, std::iter::repeat_n(0, hole));
        Ok(page)
    }
}

/// Unpacks one frame of exactly `raw_bytes`; what it promises in its head is not believed.
fn zstandard(packed: &[u8], raw_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut raw = vec![0; raw_bytes];
    match zstd::bulk::decompress_to_buffer(packed, raw.as_mut_slice()) {
        Ok(length) if length == raw_bytes => Ok(raw),
        Ok(_) => Err(DecompressError::WrongLength),
        Err(_) => Err(DecompressError::Corrupt),
    }
}

/// One block of one relation that a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockReference<'a> {
    /// The number that the record gives it.
    pub id: u8,
    /// The relation's files.
    pub file: FileNumber,
    /// Fork.
    pub fork: Fork,
    /// Block in the fork.
    pub block: BlockNo,
    /// Replay makes the page anew without reading it.
    pub will_init: bool,
    /// An image.
    pub image: Option<Image<'a>>,
    /// Bytes for the resource manager.
    pub data: &'a [u8],
    data_bytes: u16,
}

impl BlockReference<'_> {
    /// Replay writes the whole page without reading what stands there.
    pub fn rewrites(&self) -> bool {
        self.will_init || self.image.is_some_and(|image| image.apply)
    }

    /// Bytes that stand behind the headers of the record for it.
    #[inline]
    pub(crate) fn payload_bytes(&self) -> usize {
        let image = self.image.map_or(0, |image| usize::from(image.stored));
        image + usize::from(self.data_bytes)
    }
}

impl<'a> BlockReference<'a> {
    /// Reads the header of the block behind its id, at `at`; gives the place behind it too.
    #[inline]
    pub(crate) fn parse(
        id: u8,
        record: &'a [u8],
        at: usize,
        before: Option<FileNumber>,
        (major, block_bytes): (u16, u32),
    ) -> Result<(Self, usize), RecordFault> {
        let fault = || RecordFault::Block { id };
        let fork_flags = *record.get(at).ok_or_else(fault)?;
        let data_bytes = u16_at(record, at + 1).ok_or_else(fault)?;
        if (fork_flags & HAS_DATA != 0) != (data_bytes > 0) {
            return Err(fault());
        }
        let mut at = at + 3;
        let mut image = None;
        if fork_flags & HAS_IMAGE != 0 {
            let (found, behind) = parse_image(record, at, major, block_bytes).ok_or_else(fault)?;
            (image, at) = (Some(found), behind);
        }
        let file = if fork_flags & SAME_REL != 0 {
            before
        } else {
            at += 12;
            FileNumber::at(record, at - 12)
        };
        let fork = fork_of_number(u32::from(fork_flags & FORK_MASK));
        let reference = BlockReference {
            id,
            file: file.ok_or_else(fault)?,
            fork: fork.ok_or_else(fault)?,
            block: u32_at(record, at).ok_or_else(fault)?,
            will_init: fork_flags & WILL_INIT != 0,
            image,
            data: &[],
            data_bytes,
        };
        Ok((reference, at + 4))
    }

    /// The same with its bytes, which begin at `at`; gives the place behind them.
    pub(crate) fn with_payload(mut self, record: &'a [u8], at: usize) -> (Self, usize) {
        let mut at = at;
        if let Some(image) = &mut self.image {
            let end = at + usize::from(image.stored);
            image.bytes = record.get(at..end).unwrap_or_default();
            at = end;
        }
        let end = at + usize::from(self.data_bytes);
        self.data = record.get(at..end).unwrap_or_default();
        (self, end)
    }
}

fn parse_image(
    record: &[u8],
    at: usize,
    major: u16,
    block_bytes: u32,
) -> Option<(Image<'_>, usize)> {
    let flags = flags_of(major);
    let stored = u16_at(record, at)?;
    let hole_offset = u16_at(record, at + 2)?;
    let info = *record.get(at + 4)?;
    let mut behind = at + 5;
    let has = |bit: u8| bit != 0 && info & bit != 0;
    let compression = match (has(flags.pglz), has(flags.lz4), has(flags.zstd)) {
        (false, false, false) => Compression::None,
        (true, ..) => Compression::Pglz,
        (_, true, _) => Compression::Lz4,
        _ => Compression::Zstd,
    };
    let packed = compression != Compression::None;
    let hole_bytes = match (packed, has(flags.has_hole)) {
        (false, _) => u16::try_from(block_bytes.checked_sub(u32::from(stored))?).ok()?,
        (true, false) => 0,
        (true, true) => {
            behind += 2;
            u16_at(record, behind - 2)?
        }
    };
    // The same contradictions that the server refuses.
    let whole = u32::from(stored) == block_bytes;
    let sound = match (has(flags.has_hole), packed) {
        (true, _) => hole_offset > 0 && hole_bytes > 0 && !whole,
        (false, true) => hole_offset == 0 && !whole,
        (false, false) => hole_offset == 0 && whole,
    };
    sound.then_some(())?;
    let image = Image {
        bytes: &[],
        hole_offset,
        hole_bytes,
        compression,
        apply: has(flags.apply),
        stored,
    };
    Some((image, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: &[u8]) -> Image<'_> {
        Image {
            bytes,
            hole_offset: 100,
            hole_bytes: 1000,
            compression: Compression::Zstd,
            apply: true,
            stored: 0,
        }
    }

    #[test]
    fn an_image_packed_with_zstandard_is_unpacked_around_its_hole() {
        let raw = [7; 7192];
        let packed = zstd::bulk::compress(&raw, 3).expect("a frame");
        let page = image(&packed).page(8192).expect("a page");
        let hole: Vec<usize> = (0..8192).filter(|at| page.get(*at) == Some(&0)).collect();
        assert_eq!(
            (page.len(), hole.first(), hole.len()),
            (8192, Some(&100), 1000)
        );
        let short = zstd::bulk::compress(&raw[1..], 3).expect("a frame");
        assert_eq!(image(&short).page(8192), Err(DecompressError::WrongLength));
        let long = zstd::bulk::compress(&[7; 9000], 3).expect("a frame");
        assert_eq!(image(&long).page(8192), Err(DecompressError::Corrupt));
        assert_eq!(
            image(&packed[1..]).page(8192),
            Err(DecompressError::Corrupt)
        );
    }
}
