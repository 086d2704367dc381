//! The header of a WAL page, and what must hold of it at its place.
//!
//! ```text
//! 0       2      4     8          16        20    24      32         36           40
//! | magic | info | tli | pageaddr | rem_len | pad | sysid | seg_size | xlog_blcksz |
//!                                            short ^          first page of a segment ^
//! ```
//!
//! Truth: `XLogPageHeaderData` in `src/include/access/xlog_internal.h`,
//! `XLogReaderValidatePageHeader` in `src/backend/access/transam/xlogreader.c`.

use std::fmt;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::layout::Layout;
use crate::types::Lsn;

/// Bytes of the header of all pages but the first of a segment.
pub(crate) const SHORT_BYTES: u64 = 24;
/// Bytes of the header of the first page of a segment.
pub(crate) const LONG_BYTES: u64 = 40;
/// `XLP_FIRST_IS_CONTRECORD`: the page begins with the rest of a record.
pub(crate) const FIRST_IS_CONTRECORD: u16 = 0x0001;
/// `XLP_LONG_HEADER`.
pub(crate) const LONG_HEADER: u16 = 0x0002;
/// `XLP_FIRST_IS_OVERWRITE_CONTRECORD`: what stood before is a record that was given up.
pub(crate) const FIRST_IS_OVERWRITE_CONTRECORD: u16 = 0x0008;
/// `XLP_ALL_FLAGS`.
pub(crate) const ALL_FLAGS: u16 = 0x000F;

/// What one cluster's WAL looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// PostgreSQL's major.
    pub major: u16,
    /// `XLOG_PAGE_MAGIC`.
    pub magic: u16,
    /// The cluster's number, if it is known.
    pub system_identifier: Option<u64>,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Bytes in a segment.
    pub segment_bytes: u32,
    /// Bytes in a page of a relation, for images.
    pub block_bytes: u32,
}

impl Shape {
    /// Of this major, if the sizes are some that PostgreSQL can be built and made with.
    pub fn new(
        layout: &Layout,
        system_identifier: Option<u64>,
        page_bytes: u32,
        segment_bytes: u32,
        block_bytes: u32,
    ) -> Option<Self> {
        let pages = (1024..=65536).contains(&page_bytes) && page_bytes.is_power_of_two();
        let segments = (1 << 20..=1 << 30).contains(&segment_bytes)
            && segment_bytes.is_power_of_two()
            && page_bytes <= segment_bytes;
        let blocks = (1024..=32768).contains(&block_bytes) && block_bytes.is_power_of_two();
        (pages && segments && blocks).then_some(Shape {
            major: layout.major,
            magic: layout.wal_magic,
            system_identifier,
            page_bytes,
            segment_bytes,
            block_bytes,
        })
    }

    /// Where the page that holds `at` begins.
    #[inline]
    pub fn page_of(&self, at: Lsn) -> Lsn {
        Lsn(at.0 & !(u64::from(self.page_bytes) - 1))
    }

    /// Where the segment that holds `at` begins.
    #[inline]
    pub fn segment_of(&self, at: Lsn) -> Lsn {
        Lsn(at.0 & !(u64::from(self.segment_bytes) - 1))
    }

    /// Bytes of the header of the page that begins at `page`.
    pub fn page_header_bytes(&self, page: Lsn) -> u64 {
        if self.segment_of(page) == page {
            LONG_BYTES
        } else {
            SHORT_BYTES
        }
    }

    /// The number of the segment that holds `at`.
    #[inline]
    pub fn segment_number(&self, at: Lsn) -> u64 {
        at.0 >> self.segment_bytes.trailing_zeros()
    }

    /// The name of the file of a segment: timeline, upper half and number within it.
    pub fn segment_name(&self, timeline: u32, number: u64) -> String {
        let within = (1u64 << 32) / u64::from(self.segment_bytes);
        format!(
            "{timeline:08X}{:08X}{:08X}",
            number / within,
            number % within
        )
    }

    /// Timeline and number of the segment of this name; nothing for every other name.
    pub fn parse_name(&self, name: &str) -> Option<(u32, u64)> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
        (name.len() == 24 && name.bytes().all(digit)).then_some(())?;
        let part = |from: usize| u32::from_str_radix(name.get(from..from + 8)?, 16).ok();
        let within = (1u64 << 32) / u64::from(self.segment_bytes);
        let low = u64::from(part(16)?);
        (low < within).then_some((part(0)?, u64::from(part(8)?) * within + low))
    }
}

/// The header, checked against nothing but the length of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// `xlp_magic`.
    pub magic: u16,
    /// `xlp_info`.
    pub info: u16,
    /// `xlp_tli`.
    pub timeline: u32,
    /// `xlp_pageaddr`.
    pub address: Lsn,
    /// `xlp_rem_len`: bytes that are still to come of the record that the page begins with.
    pub remaining: u32,
    /// `xlp_sysid`, in a long header.
    pub system_identifier: Option<u64>,
    /// `xlp_seg_size`, in a long header.
    pub segment_bytes: Option<u32>,
    /// `xlp_xlog_blcksz`, in a long header.
    pub page_bytes: Option<u32>,
}

/// Why a page does not belong where it stands. In the order in which the server asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageFault {
    /// Another magic number; 0 on a page that was never written.
    Magic {
        /// The one found.
        found: u16,
        /// The major's.
        expected: u16,
    },
    /// Bits that no server sets, or a short header where a segment begins.
    Info {
        /// `xlp_info`.
        found: u16,
    },
    /// Of another cluster.
    SystemIdentifier {
        /// The one found.
        found: u64,
    },
    /// Of a cluster with other segments.
    SegmentSize {
        /// Bytes.
        found: u32,
    },
    /// Of a cluster with other pages.
    PageSize {
        /// Bytes.
        found: u32,
    },
    /// The page was written for another place: the segment is an old one, used again.
    Address {
        /// The place it was written for.
        found: Lsn,
    },
    /// An older timeline than the pages before.
    Timeline {
        /// The one found.
        found: u32,
        /// The newest one before.
        newest: u32,
    },
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageFault::Magic { found, expected } => {
                write!(f, "magic number {found:04X}, not {expected:04X}")
            }
            PageFault::Info { found } => write!(f, "flags {found:04X} that do not fit the place"),
            PageFault::SystemIdentifier { found } => write!(f, "system identifier {found}"),
            PageFault::SegmentSize { found } => write!(f, "a segment size of {found} bytes"),
            PageFault::PageSize { found } => write!(f, "a page size of {found} bytes"),
            PageFault::Address { found } => write!(f, "address {found}"),
            PageFault::Timeline { found, newest } => {
                write!(f, "timeline {found} after timeline {newest}")
            }
        }
    }
}

impl PageHeader {
    /// Reads the header; nothing when the bytes end before.
    #[inline]
    pub fn parse(page: &[u8]) -> Option<Self> {
        let info = u16_at(page, 2)?;
        let long = info & LONG_HEADER != 0;
        Some(PageHeader {
            magic: u16_at(page, 0)?,
            info,
            timeline: u32_at(page, 4)?,
            address: Lsn(u64_at(page, 8)?),
            remaining: u32_at(page, 16)?,
            system_identifier: u64_at(page, 24).filter(|_| long),
            segment_bytes: u32_at(page, 32).filter(|_| long),
            page_bytes: u32_at(page, 36).filter(|_| long),
        })
    }

    /// Bytes of the header.
    #[inline]
    pub fn bytes(&self) -> u64 {
        if self.is_long() {
            LONG_BYTES
        } else {
            SHORT_BYTES
        }
    }

    /// It has the fields of a segment's first page.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.info & LONG_HEADER != 0
    }

    /// The page begins with the rest of a record.
    #[inline]
    pub fn continues(&self) -> bool {
        self.info & FIRST_IS_CONTRECORD != 0
    }

    /// The record before was given up.
    #[inline]
    pub fn overwrites(&self) -> bool {
        self.info & FIRST_IS_OVERWRITE_CONTRECORD != 0
    }

    /// The page belongs at `at`; timelines are not compared.
    pub fn check(&self, at: Lsn, shape: &Shape) -> Result<(), PageFault> {
        let expected = shape.magic;
        let first = shape.segment_of(at) == at;
        if self.magic != expected {
            let found = self.magic;
            return Err(PageFault::Magic { found, expected });
        }
        if self.info & !ALL_FLAGS != 0 || (first && !self.is_long()) {
            return Err(PageFault::Info { found: self.info });
        }
        self.check_long(shape)?;
        if self.address != at {
            let found = self.address;
            return Err(PageFault::Address { found });
        }
        Ok(())
    }

    fn check_long(&self, shape: &Shape) -> Result<(), PageFault> {
        match (self.system_identifier, shape.system_identifier) {
            (Some(found), Some(expected)) if found != expected => {
                return Err(PageFault::SystemIdentifier { found });
            }
            _ => {}
        }
        match (self.segment_bytes, self.page_bytes) {
            (Some(found), _) if found != shape.segment_bytes => {
                Err(PageFault::SegmentSize { found })
            }
            (_, Some(found)) if found != shape.page_bytes => Err(PageFault::PageSize { found }),
            _ => Ok(()),
        }
    }
}
