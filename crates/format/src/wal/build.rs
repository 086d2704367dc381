//! WAL made from records: the first segment of a cluster whose WAL is lost, and all that tests and
//! fuzzing need.

use crate::build::{put_u16, put_u32};
use crate::types::Lsn;
use crate::wal::page_header::{FIRST_IS_CONTRECORD, LONG_HEADER, Shape};
use crate::wal::reader::WalPages;
use crate::wal::record::{CRC_AT, HEADER_BYTES};

/// Writes records one after the other, with page headers where they belong.
#[derive(Clone, Debug)]
pub struct WalBuilder {
    /// The pages, from `start` on.
    pub bytes: Vec<u8>,
    shape: Shape,
    start: Lsn,
    timeline: u32,
    last: Lsn,
}

impl WalBuilder {
    /// From the start of a segment on.
    pub fn new(shape: Shape, start: Lsn, timeline: u32) -> Self {
        assert!(
            shape.segment_of(start) == start,
            "{start} is inside a segment"
        );
        WalBuilder {
            bytes: Vec::new(),
            shape,
            start,
            timeline,
            last: Lsn(start.0.saturating_sub(8)),
        }
    }

    /// Where the next byte goes.
    pub fn position(&self) -> Lsn {
        Lsn(self.start.0 + self.bytes.len() as u64)
    }

    /// Writes a record of these parts behind its header; gives its place.
    pub fn record(&mut self, manager: u8, info: u8, xid: u32, body: &[u8]) -> Lsn {
        let record = sealed(manager, info, xid, self.last, body);
        let begin = self.raw(&record);
        self.last = begin;
        begin
    }

    /// Writes these bytes as a record; gives their place.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tests make records by it, which are short"
    )]
    pub fn raw(&mut self, record: &[u8]) -> Lsn {
        self.page_header(0);
        let begin = self.position();
        let mut rest = record;
        loop {
            let page = self.shape.page_of(self.position());
            let room = page.0 + u64::from(self.shape.page_bytes) - self.position().0;
            let (now, later) = rest.split_at(rest.len().min(room as usize));
            self.bytes.extend_from_slice(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
            self.page_header(rest.len() as u32);
        }
        let padded = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(padded, 0);
        begin
    }

    /// A page's header, where a page begins at the present position.
    #[expect(clippy::indexing_slicing, reason = "the header is 24 or 40 bytes long")]
    fn page_header(&mut self, remaining: u32) {
        let at = self.position();
        if self.shape.page_of(at) != at {
            return;
        }
        let first = self.shape.segment_of(at) == at;
        let mut header = vec![0; if first { 40 } else { 24 }];
        let long = if first { LONG_HEADER } else { 0 };
        let rest = if remaining > 0 {
            FIRST_IS_CONTRECORD
        } else {
            0
        };
        put_u16(&mut header, 0, self.shape.magic);
        put_u16(&mut header, 2, long | rest);
        put_u32(&mut header, 4, self.timeline);
        header[8..16].copy_from_slice(&at.0.to_le_bytes());
        put_u32(&mut header, 16, remaining);
        if first {
            let system = self.shape.system_identifier.unwrap_or_default();
            header[24..32].copy_from_slice(&system.to_le_bytes());
            put_u32(&mut header, 32, self.shape.segment_bytes);
            put_u32(&mut header, 36, self.shape.page_bytes);
        }
        self.bytes.extend_from_slice(&header);
    }

    /// Fills the last page with zeros, and gives all as pages to read.
    pub fn pages(mut self) -> MadePages {
        let full = self
            .bytes
            .len()
            .next_multiple_of(self.shape.page_bytes as usize);
        self.bytes.resize(full, 0);
        MadePages {
            bytes: self.bytes,
            start: self.start,
            page_bytes: self.shape.page_bytes,
        }
    }
}

/// The first page of a segment that begins with the record of a shutdown checkpoint, and the place
/// of that record. `checkpoint` is the record's data. Truth: `WriteEmptyXLOG` in
/// `src/bin/pg_resetwal/pg_resetwal.c`.
pub fn first_page(shape: Shape, segment: Lsn, timeline: u32, checkpoint: &[u8]) -> Vec<u8> {
    let mut wal = WalBuilder::new(shape, segment, timeline);
    wal.raw(&sealed(0, 0, 0, Lsn(0), &main_data(checkpoint)));
    wal.pages().bytes
}

/// The bytes of a record with a right checksum.
#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "tests make records by it, which are short"
)]
pub fn sealed(manager: u8, info: u8, xid: u32, previous: Lsn, body: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER_BYTES];
    record.extend_from_slice(body);
    let total = record.len() as u32;
    put_u32(&mut record, 0, total);
    put_u32(&mut record, 4, xid);
    record[8..16].copy_from_slice(&previous.0.to_le_bytes());
    record[16] = info;
    record[17] = manager;
    seal(&mut record);
    record
}

/// Makes the checksum of a record true.
pub fn seal(record: &mut [u8]) {
    let body = record.get(HEADER_BYTES..).unwrap_or_default();
    let header = record.get(..CRC_AT).unwrap_or_default();
    let crc = crc32c::crc32c_append(crc32c::crc32c(body), header);
    put_u32(record, CRC_AT, crc);
}

/// Main data with its short header.
pub fn main_data(main: &[u8]) -> Vec<u8> {
    let count = u8::try_from(main.len()).expect("short main data");
    let mut body = vec![255, count];
    body.extend_from_slice(main);
    body
}

/// WAL in memory.
#[derive(Clone, Debug)]
pub struct MadePages {
    /// The pages.
    pub bytes: Vec<u8>,
    /// Where they begin.
    pub start: Lsn,
    /// Bytes in a page.
    pub page_bytes: u32,
}

impl WalPages for MadePages {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        let from = usize::try_from(at.0.checked_sub(self.start.0)?).ok()?;
        self.bytes
            .get(from..from.checked_add(self.page_bytes as usize)?)
    }
}
