//! A record: header, blocks, main data.
//!
//! ```text
//! 0         4     8      16     17     20    24
//! | tot_len | xid | prev | info | rmid | crc | headers of blocks and of the main data | payloads |
//! ```
//!
//! The checksum covers all but itself. Truth: `src/include/access/xlogrecord.h`,
//! `DecodeXLogRecord` in `src/backend/access/transam/xlogreader.c`.

use std::fmt;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::types::{Lsn, Xid};
use crate::wal::block::{BLOCK_ID_MAX, BlockReference, FileNumber};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// Where the checksum stands.
pub(crate) const CRC_AT: usize = 20;
/// `XLogRecordMaxSize`, and what memory allowed before there was such a limit.
pub(crate) const RECORD_BYTES_MAX: u32 = 0x3FFF_FFFF;
pub(super) const ID_DATA_SHORT: u8 = 255;
pub(super) const ID_DATA_LONG: u8 = 254;
const ID_ORIGIN: u8 = 253;
const ID_TOPLEVEL_XID: u8 = 252;

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// `xl_tot_len`, header included.
    pub total_bytes: u32,
    /// `xl_xid`; 0 when no transaction wrote it.
    pub xid: Xid,
    /// `xl_prev`: where the record before begins.
    pub previous: Lsn,
    /// `xl_info`: the upper half is the resource manager's.
    pub info: u8,
    /// `xl_rmid`.
    pub manager: u8,
    /// `xl_crc`.
    pub crc: u32,
}

impl RecordHeader {
    /// Reads it; nothing when the bytes end before.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        Some(RecordHeader {
            total_bytes: u32_at(bytes, 0)?,
            xid: Xid(u32_at(bytes, 4)?),
            previous: Lsn(u64_at(bytes, 8)?),
            info: *bytes.get(16)?,
            manager: *bytes.get(17)?,
            crc: u32_at(bytes, CRC_AT)?,
        })
    }

    /// The resource manager's half of the info byte.
    pub fn operation(&self) -> u8 {
        self.info & 0xF0
    }

    /// `XLOG_SWITCH`: nothing else stands in its segment.
    pub(crate) fn is_switch(&self) -> bool {
        self.manager == 0 && self.operation() == 0x40
    }
}

/// Why the inside of a record makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordFault {
    /// Shorter than its header, or than what its headers promise.
    Short,
    /// A header of a block contradicts itself.
    Block {
        /// Its number.
        id: u8,
    },
    /// A part of a kind that is not known.
    Part {
        /// Its number.
        id: u8,
    },
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFault::Short => f.write_str("its parts are longer than the record"),
            RecordFault::Block { id } => write!(f, "the header of block {id} contradicts itself"),
            RecordFault::Part { id } => write!(f, "a part of unknown kind {id}"),
        }
    }
}

/// A record whose checksum is right, before it is taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WholeRecord<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next one may begin.
    pub end: Lsn,
    /// Its header.
    pub header: RecordHeader,
    pub(crate) bytes: &'a [u8],
    pub(crate) numbers: (u16, u32),
}

impl<'a> WholeRecord<'a> {
    /// Takes it apart.
    ///
    /// # Errors
    ///
    /// Its inside makes no sense.
    pub fn parse(&self) -> Result<Record<'a>, RecordFault> {
        Record::parse(self.bytes, (self.lsn, self.end), self.numbers)
    }

    /// Whether it is about one of the blocks that `wanted` takes; nothing is copied for the answer.
    ///
    /// # Errors
    ///
    /// Its inside makes no sense.
    pub fn is_about(
        &self,
        mut wanted: impl FnMut(&BlockReference<'_>) -> bool,
    ) -> Result<bool, RecordFault> {
        let mut parts = RecordParts::of(self.bytes, self.numbers)?;
        let mut is_about = false;
        while let Some(part) = parts.next_part()? {
            if let Part::Block(block) = part {
                is_about |= wanted(&block);
            }
        }
        Ok(is_about)
    }
}

/// What the headers behind that of the record describe.
enum Part<'a> {
    Block(BlockReference<'a>),
    /// So many bytes of the resource manager.
    Main(usize),
    TopXid(Xid),
    Origin(u16),
}

/// The headers of a record, one after the other.
struct RecordParts<'a> {
    bytes: &'a [u8],
    header: RecordHeader,
    numbers: (u16, u32),
    total: usize,
    at: usize,
    payload: usize,
    before: Option<(u8, FileNumber)>,
    is_over: bool,
}

impl<'a> RecordParts<'a> {
    #[inline]
    fn of(bytes: &'a [u8], numbers: (u16, u32)) -> Result<Self, RecordFault> {
        let header = RecordHeader::parse(bytes).ok_or(RecordFault::Short)?;
        Ok(RecordParts {
            bytes,
            header,
            numbers,
            total: usize::try_from(header.total_bytes).map_err(|_| RecordFault::Short)?,
            at: HEADER_BYTES,
            payload: 0,
            before: None,
            is_over: false,
        })
    }

    /// The next one. After the last, what they promise adds up to the length of the record, and
    /// `at` is where the payloads begin.
    #[inline]
    fn next_part(&mut self) -> Result<Option<Part<'a>>, RecordFault> {
        let rest = self.total.checked_sub(self.at).ok_or(RecordFault::Short)?;
        // Every turn moves `at` on; there are at most 33 blocks and four other parts.
        if self.is_over || rest <= self.payload {
            let is_whole = rest == self.payload;
            return is_whole.then_some(None).ok_or(RecordFault::Short);
        }
        let bytes = self.bytes;
        let id = *bytes.get(self.at).ok_or(RecordFault::Short)?;
        self.at += 1;
        Ok(Some(match id {
            0..=BLOCK_ID_MAX => self.block(id)?,
            ID_DATA_SHORT => {
                let len = *bytes.get(self.at).ok_or(RecordFault::Short)?;
                self.main(1, usize::from(len))
            }
            ID_DATA_LONG => {
                let long = u32_at(bytes, self.at).ok_or(RecordFault::Short)?;
                let len = usize::try_from(long).map_err(|_| RecordFault::Short)?;
                self.main(4, len)
            }
            ID_ORIGIN => {
                let origin = u16_at(bytes, self.at).ok_or(RecordFault::Short)?;
                self.at += 2;
                Part::Origin(origin)
            }
            ID_TOPLEVEL_XID => {
                let xid = u32_at(bytes, self.at).ok_or(RecordFault::Short)?;
                self.at += 4;
                Part::TopXid(Xid(xid))
            }
            id => return Err(RecordFault::Part { id }),
        }))
    }

    #[inline]
    fn block(&mut self, id: u8) -> Result<Part<'a>, RecordFault> {
        let before = self.before.map(|(_, file)| file);
        let (block, behind) = BlockReference::parse(id, self.bytes, self.at, before, self.numbers)?;
        let is_rising = self.before.is_none_or(|(last, _)| last < id);
        is_rising.then_some(()).ok_or(RecordFault::Block { id })?;
        self.payload += block.payload_bytes();
        self.before = Some((id, block.file));
        self.at = behind;
        Ok(Part::Block(block))
    }

    /// The header of the main data is the last one.
    #[inline]
    fn main(&mut self, header_bytes: usize, len: usize) -> Part<'a> {
        self.at += header_bytes;
        self.payload = self.payload.saturating_add(len);
        self.is_over = true;
        Part::Main(len)
    }
}

/// A record whose parts add up to its length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next one may begin.
    pub end: Lsn,
    /// Its header.
    pub header: RecordHeader,
    /// The blocks it is about.
    pub blocks: Vec<BlockReference<'a>>,
    /// The resource manager's own bytes; empty in a record that was too long to be kept.
    pub main: &'a [u8],
    /// `XLR_BLOCK_ID_TOPLEVEL_XID`: the transaction above the one in the header.
    pub top_xid: Option<Xid>,
    /// `XLR_BLOCK_ID_ORIGIN`: the replication origin that the change came from.
    pub origin: Option<u16>,
}

impl<'a> Record<'a> {
    /// Takes apart the bytes of a record. `bytes` may be its beginning only, where it is so long
    /// that it was not kept: payloads are then empty, headers must be there.
    pub fn parse(
        bytes: &'a [u8],
        (lsn, end): (Lsn, Lsn),
        (major, block_bytes): (u16, u32),
    ) -> Result<Self, RecordFault> {
        let mut parts = RecordParts::of(bytes, (major, block_bytes))?;
        let mut record = Record {
            lsn,
            end,
            header: parts.header,
            blocks: Vec::new(),
            main: &[],
            top_xid: None,
            origin: None,
        };
        let mut main_bytes = 0;
        while let Some(part) = parts.next_part()? {
            match part {
                Part::Block(block) => record.blocks.push(block),
                Part::Main(bytes) => main_bytes = bytes,
                Part::TopXid(xid) => record.top_xid = Some(xid),
                Part::Origin(origin) => record.origin = Some(origin),
            }
        }
        let mut at = parts.at;
        for block in &mut record.blocks {
            (*block, at) = block.with_payload(bytes, at);
        }
        record.main = bytes.get(at..at + main_bytes).unwrap_or_default();
        Ok(record)
    }
}
