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
use crate::wal::block::{BLOCK_ID_MAX, BlockReference};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// Where the checksum stands.
pub(crate) const CRC_AT: usize = 20;
/// `XLogRecordMaxSize`, and what memory allowed before there was such a limit.
pub(crate) const RECORD_BYTES_MAX: u32 = 0x3FFF_FFFF;
const ID_DATA_SHORT: u8 = 255;
const ID_DATA_LONG: u8 = 254;
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
    pub fn parse(bytes: &[u8]) -> Option<Self> {
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
}

impl<'a> Record<'a> {
    /// Takes apart the bytes of a record. `bytes` may be its beginning only, where it is so long
    /// that it was not kept: payloads are then empty, headers must be there.
    pub fn parse(
        bytes: &'a [u8],
        (lsn, end): (Lsn, Lsn),
        (major, block_bytes): (u16, u32),
    ) -> Result<Self, RecordFault> {
        let header = RecordHeader::parse(bytes).ok_or(RecordFault::Short)?;
        let total = usize::try_from(header.total_bytes).map_err(|_| RecordFault::Short)?;
        let mut record = Record {
            lsn,
            end,
            header,
            blocks: Vec::new(),
            main: &[],
            top_xid: None,
        };
        let mut at = HEADER_BYTES;
        let mut payload = 0usize;
        let mut main_bytes = 0;
        // Every turn moves `at` on; there are at most 33 blocks and four other parts.
        while total.checked_sub(at).ok_or(RecordFault::Short)? > payload {
            let id = *bytes.get(at).ok_or(RecordFault::Short)?;
            at += 1;
            match id {
                0..=BLOCK_ID_MAX => {
                    let last = record.blocks.last();
                    let rising = last.is_none_or(|last| last.id < id);
                    let before = last.map(|last| last.file);
                    let (block, behind) =
                        BlockReference::parse(id, bytes, at, before, (major, block_bytes))?;
                    rising.then_some(()).ok_or(RecordFault::Block { id })?;
                    payload += block.payload_bytes();
                    record.blocks.push(block);
                    at = behind;
                }
                ID_DATA_SHORT => {
                    main_bytes = usize::from(*bytes.get(at).ok_or(RecordFault::Short)?);
                    at += 1;
                    payload += main_bytes;
                    break;
                }
                ID_DATA_LONG => {
                    let long = u32_at(bytes, at).ok_or(RecordFault::Short)?;
                    main_bytes = usize::try_from(long).map_err(|_| RecordFault::Short)?;
                    at += 4;
                    payload = payload.saturating_add(main_bytes);
                    break;
                }
                ID_ORIGIN => {
                    u16_at(bytes, at).ok_or(RecordFault::Short)?;
                    at += 2;
                }
                ID_TOPLEVEL_XID => {
                    record.top_xid = Some(Xid(u32_at(bytes, at).ok_or(RecordFault::Short)?));
                    at += 4;
                }
                id => return Err(RecordFault::Part { id }),
            }
        }
        if total.checked_sub(at) != Some(payload) {
            return Err(RecordFault::Short);
        }
        for block in &mut record.blocks {
            (*block, at) = block.with_payload(bytes, at);
        }
        record.main = bytes.get(at..at + main_bytes).unwrap_or_default();
        Ok(record)
    }
}
