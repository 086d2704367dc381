//! Records one after the other, put together across pages.
//!
//! Truth: `XLogDecodeNextRecord` in `src/backend/access/transam/xlogreader.c`. The same questions
//! are asked in the same order, so that reading ends where the server's ends.

use crate::types::Lsn;
use crate::wal::end::{EndReason, WalEnd};
use crate::wal::managers::is_known;
use crate::wal::page_header::{LONG_BYTES, PageFault, PageHeader, SHORT_BYTES, Shape};
use crate::wal::record::{
    CRC_AT, HEADER_BYTES, RECORD_BYTES_MAX, Record, RecordHeader, WholeRecord,
};

/// Bytes of a record that are kept; of longer ones, which are only commits of very many
/// subtransactions and messages of extensions, the rest is summed and forgotten.
const KEPT_BYTES: usize = 32 << 20;

/// No cluster gets this far; beyond it, sums of positions could overflow.
const LSN_MAX: Lsn = Lsn(u64::MAX / 2);

/// Where pages of WAL come from.
pub trait WalPages {
    /// The whole page that begins at `at`; `None` when no file holds it.
    fn page(&mut self, at: Lsn) -> Option<&[u8]>;
}

/// Reads records from a place on until there are no more.
pub struct WalReader<P> {
    pages: P,
    shape: Shape,
    next: Lsn,
    last: Option<Lsn>,
    newest: Option<(Lsn, u32)>,
    segment: Option<u64>,
    /// The page whose header was checked last: many records begin on one.
    page: Option<(Lsn, PageHeader)>,
    found: Found,
}

/// The record at hand.
#[derive(Default)]
struct Found {
    kept: Vec<u8>,
    got: u32,
    crc: u32,
}

/// What a try to put a record together gave.
enum Try {
    /// It stands in `found`, and the next one may begin there.
    Whole { next: Lsn },
    /// It was given up, and another one begins on this page.
    Overwritten { page: Lsn },
}

impl<P: WalPages> WalReader<P> {
    /// Reads from `start`, where a record or a page begins.
    pub fn new(pages: P, shape: Shape, start: Lsn) -> Self {
        WalReader {
            pages,
            shape,
            next: start,
            last: None,
            newest: None,
            segment: None,
            page: None,
            found: Found::default(),
        }
    }

    /// Where the next record may begin.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// The timeline of the newest page that was read.
    pub fn timeline(&self) -> Option<u32> {
        self.newest.map(|(_, timeline)| timeline)
    }

    /// Where the pages come from.
    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// The same, for another reader.
    pub fn into_pages(self) -> P {
        self.pages
    }

    /// The same, to have them look elsewhere: after an end, the record is tried again.
    pub fn pages_mut(&mut self) -> &mut P {
        self.page = None;
        &mut self.pages
    }

    /// The next record. After an end the same end comes again.
    ///
    /// # Errors
    ///
    /// There is no record.
    pub fn read(&mut self) -> Result<Record<'_>, WalEnd> {
        let (start, next) = self.gather()?;
        let numbers = (self.shape.major, self.shape.block_bytes);
        let record = Record::parse(&self.found.kept, (start, next), numbers);
        let record = record.map_err(|fault| WalEnd {
            record: start,
            at: start,
            why: EndReason::Record(fault),
        })?;
        self.next = next;
        self.last = Some(start);
        Ok(record)
    }

    /// The next record, which is not taken apart. One whose inside makes no sense is no end.
    ///
    /// # Errors
    ///
    /// There is no record.
    pub fn read_whole(&mut self) -> Result<WholeRecord<'_>, WalEnd> {
        let (lsn, end) = self.gather()?;
        self.next = end;
        self.last = Some(lsn);
        let header = self.found.header();
        Ok(WholeRecord {
            lsn,
            end,
            header: header.expect("a record whose checksum is right has a header"),
            bytes: &self.found.kept,
            numbers: (self.shape.major, self.shape.block_bytes),
        })
    }

    /// Puts the bytes of the next record together; where it begins, and where the next one may.
    fn gather(&mut self) -> Result<(Lsn, Lsn), WalEnd> {
        let mut start = self.next;
        // A record that was given up leads to a later page, never to an earlier one.
        loop {
            start = self.skip_header(start)?;
            match self.assemble(start)? {
                Try::Whole { next } => return Ok((start, next)),
                Try::Overwritten { page } => start = page,
            }
        }
    }

    /// Moves to the first record that begins on the page of the present position or on a later
    /// one, behind the rest of a record that may come first.
    pub fn find_first(&mut self) -> Result<Lsn, WalEnd> {
        let mut page = self.shape.page_of(self.next);
        let pages_max = u64::from(RECORD_BYTES_MAX) / 1000;
        for _ in 0..pages_max {
            let header = self.page_header(page, page)?;
            let room = u64::from(self.shape.page_bytes) - header.bytes();
            let remaining = u64::from(header.remaining);
            if !header.continues() || remaining < room {
                let rest = if header.continues() { remaining } else { 0 };
                self.next = Lsn(page.0 + header.bytes() + rest.next_multiple_of(8).min(room));
                self.last = None;
                return Ok(self.next);
            }
            page = self.after(page);
        }
        let why = EndReason::UnexpectedContinuation;
        Err(WalEnd {
            record: page,
            at: page,
            why,
        })
    }

    fn after(&self, page: Lsn) -> Lsn {
        Lsn(page.0.saturating_add(u64::from(self.shape.page_bytes)))
    }

    /// Behind the page's header, where `start` is the start of a page.
    fn skip_header(&mut self, start: Lsn) -> Result<Lsn, WalEnd> {
        let end = |why| WalEnd {
            record: start,
            at: start,
            why,
        };
        let page = self.shape.page_of(start);
        let header = self.page_header(page, start)?;
        let offset = start.0 - page.0;
        let begin = match offset {
            0 => header.bytes(),
            _ if offset < header.bytes() || !offset.is_multiple_of(8) => {
                return Err(end(EndReason::Offset));
            }
            _ => offset,
        };
        if header.continues() && begin == header.bytes() {
            return Err(end(EndReason::UnexpectedContinuation));
        }
        Ok(Lsn(page.0 + begin))
    }

    /// The header of a page that belongs at its place; the first page of its segment does too.
    fn page_header(&mut self, page: Lsn, record: Lsn) -> Result<PageHeader, WalEnd> {
        if let Some((_, header)) = self.page.filter(|(known, _)| *known == page) {
            return Ok(header);
        }
        self.page = None;
        let number = self.shape.segment_number(page);
        let first = self.shape.segment_of(page);
        if self.segment != Some(number) && first != page {
            self.one_header(first, record)?;
        }
        let header = self.one_header(page, record)?;
        self.segment = Some(number);
        self.page = Some((page, header));
        Ok(header)
    }

    fn one_header(&mut self, page: Lsn, record: Lsn) -> Result<PageHeader, WalEnd> {
        let end = |why| WalEnd {
            record,
            at: page,
            why,
        };
        let bytes = (page <= LSN_MAX).then(|| self.pages.page(page)).flatten();
        let header = bytes.and_then(PageHeader::parse);
        let header = header.ok_or_else(|| end(EndReason::NoPage))?;
        header
            .check(page, &self.shape)
            .map_err(|fault| end(EndReason::Page(fault)))?;
        match self.newest {
            Some((at, newest)) if page > at && header.timeline < newest => {
                let found = header.timeline;
                Err(end(EndReason::Page(PageFault::Timeline { found, newest })))
            }
            Some((at, _)) if page <= at => Ok(header),
            _ => {
                self.newest = Some((page, header.timeline));
                Ok(header)
            }
        }
    }

    /// Gathers the bytes of the record that begins at `start`, behind the header of its page.
    fn assemble(&mut self, start: Lsn) -> Result<Try, WalEnd> {
        let end = |why| WalEnd {
            record: start,
            at: start,
            why,
        };
        let mut page = self.shape.page_of(start);
        self.found.clear();
        let total = self.begin(start).map_err(end)?;
        let mut checked = self.found.header().is_some();
        if checked {
            self.check_header(start).map_err(end)?;
        }
        let mut next = Lsn((start.0 + u64::from(total)).next_multiple_of(8));
        while self.found.got < total {
            page = self.after(page);
            let header = self.page_header(page, start)?;
            if header.overwrites() {
                return Ok(Try::Overwritten { page });
            }
            let missing = total - self.found.got;
            let at_page = |why| WalEnd {
                record: start,
                at: page,
                why,
            };
            if !header.continues() {
                return Err(at_page(EndReason::NoContinuation));
            }
            if header.remaining != missing {
                let (found, expected) = (header.remaining, missing);
                return Err(at_page(EndReason::ContinuationLength { found, expected }));
            }
            let bytes = header.bytes();
            self.take(page, bytes, missing)
                .ok_or_else(|| at_page(EndReason::NoPage))?;
            if !checked {
                self.check_header(start).map_err(end)?;
                checked = true;
            }
            next = Lsn(page.0 + bytes + u64::from(missing).next_multiple_of(8));
        }
        self.check_crc().map_err(end)?;
        if self.found.header().is_some_and(|header| header.is_switch()) {
            let last = Lsn(next.0 + u64::from(self.shape.segment_bytes) - 1);
            next = self.shape.segment_of(last);
        }
        Ok(Try::Whole { next })
    }

    /// The part of the record on its first page, and its length.
    #[expect(clippy::cast_possible_truncation, reason = "24")]
    fn begin(&mut self, start: Lsn) -> Result<u32, EndReason> {
        let page = self.shape.page_of(start);
        let offset = start.0 - page.0;
        let bytes = self.pages.page(page).ok_or(EndReason::NoPage)?;
        let from = usize::try_from(offset).map_err(|_| EndReason::Offset)?;
        let length = crate::bytes::u32_at(bytes, from).ok_or(EndReason::NoPage)?;
        // Where the whole header stands on the page, its other fields are asked first or last;
        // the length alone decides whether there is a record at all.
        if length < HEADER_BYTES as u32 {
            return Err(EndReason::TooShort { bytes: length });
        }
        if length > RECORD_BYTES_MAX {
            return Err(EndReason::TooLong { bytes: length });
        }
        self.take(page, offset, length).ok_or(EndReason::NoPage)?;
        Ok(length)
    }

    /// Adds up to `missing` bytes of a page, from `offset` on.
    fn take(&mut self, page: Lsn, offset: u64, missing: u32) -> Option<()> {
        let bytes = self.pages.page(page)?;
        let room = u64::from(self.shape.page_bytes).checked_sub(offset)?;
        let count = room.min(u64::from(missing));
        let from = usize::try_from(offset).ok()?;
        let until = usize::try_from(offset + count).ok()?;
        self.found.add(bytes.get(from..until)?);
        Some(())
    }

    fn check_header(&self, start: Lsn) -> Result<(), EndReason> {
        let header = self.found.header().ok_or(EndReason::NoPage)?;
        if !is_known(header.manager, self.shape.major) {
            return Err(EndReason::Manager { id: header.manager });
        }
        let found = header.previous;
        match self.last {
            Some(last) if found != last => Err(EndReason::Previous {
                found,
                expected: Some(last),
            }),
            None if found >= start => Err(EndReason::Previous {
                found,
                expected: None,
            }),
            _ => Ok(()),
        }
    }

    fn check_crc(&self) -> Result<(), EndReason> {
        let stored = self.found.header().map_or(0, |header| header.crc);
        let computed = self.found.crc();
        if stored == computed {
            Ok(())
        } else {
            Err(EndReason::Crc { stored, computed })
        }
    }
}

impl Found {
    fn clear(&mut self) {
        self.kept.clear();
        self.got = 0;
        self.crc = 0;
    }

    fn add(&mut self, bytes: &[u8]) {
        let header_left = HEADER_BYTES.saturating_sub(usize::try_from(self.got).unwrap_or(0));
        let body = bytes
            .get(header_left.min(bytes.len())..)
            .unwrap_or_default();
        self.crc = crc32c::crc32c_append(self.crc, body);
        let room = KEPT_BYTES.saturating_sub(self.kept.len());
        self.kept
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        self.got = self
            .got
            .saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    }

    fn header(&self) -> Option<RecordHeader> {
        RecordHeader::parse(&self.kept)
    }

    /// The checksum runs over the body first, then over the header before its own field.
    fn crc(&self) -> u32 {
        let header = self.kept.get(..CRC_AT).unwrap_or_default();
        crc32c::crc32c_append(self.crc, header)
    }
}

const _: () = assert!(SHORT_BYTES < LONG_BYTES && LONG_BYTES < 1024);

#[cfg(test)]
mod tests;
