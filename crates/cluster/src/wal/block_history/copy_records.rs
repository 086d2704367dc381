//! The records that stand in one copy of a segment, whatever other files hold, and where those of
//! two copies differ.
//!
//! ```text
//! one    | r1 | r2 | r3 |  damaged page  | r6 | record that goes on in the next segment
//! other  | r1 | r2 | s3 | s4             | s6 | zeros
//!                    └─ differ
//! ```
//!
//! After what is damaged, records are looked for on the next page. A file that ends early, zeros
//! and the old contents of a recycled file hold no record, and differ from nothing.

use pgclinic_format::Lsn;
use pgclinic_format::wal::{Record, RecordHeader, Shape, WalEnd, WalPages, WalReader};

use super::open_copy::{CopiesInLine, OpenCopy, PIECE_BYTES};
use super::wal_copies::{Candidate, WalCopies};

/// A record as far as it tells itself from others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RecordMark {
    pub(super) lsn: Lsn,
    pub(super) end: Lsn,
    what: MarkKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum MarkKind {
    /// With the checksum over all of it.
    Whole(RecordHeader),
    /// The bytes up to the end of the segment, in which it does not end.
    Begun(Vec<u8>),
}

impl RecordMark {
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.what, MarkKind::Whole(_))
    }
}

/// What of a segment is compared.
#[derive(Clone, Copy)]
pub(super) struct SegmentSpan {
    pub(super) number: u64,
    /// Records that begin here or later do not count.
    pub(super) limit: Lsn,
}

impl SegmentSpan {
    pub(super) fn begin(self, shape: &Shape) -> Lsn {
        Lsn(self.number.saturating_mul(u64::from(shape.segment_bytes)))
    }

    pub(super) fn end(self, shape: &Shape) -> Lsn {
        let begin = self.begin(shape).0;
        Lsn(begin.saturating_add(u64::from(shape.segment_bytes)))
    }
}

/// Gives the records that begin in a copy, one after the other.
pub(super) struct CopyRecords<'a> {
    shape: Shape,
    reader: Option<WalReader<CopiesInLine<'a>>>,
    /// A record was read, and the next one follows it.
    is_in_line: bool,
    /// Where the first record is looked for; it only grows.
    page: Lsn,
    end: Lsn,
    limit: Lsn,
}

impl<'a> CopyRecords<'a> {
    pub(super) fn new(
        shape: Shape,
        copies: &'a WalCopies,
        candidate: Candidate<'a>,
        span: SegmentSpan,
    ) -> Self {
        let pages = CopiesInLine::new(shape, copies, &[(span.number, candidate)]);
        let page = span.begin(&shape);
        CopyRecords {
            shape,
            reader: Some(WalReader::new(pages, shape, page)),
            is_in_line: false,
            page,
            end: span.end(&shape),
            limit: span.limit.min(span.end(&shape)),
        }
    }

    /// Gives each whole record, taken apart, until `goes_on` is false.
    pub(super) fn each(mut self, mut goes_on: impl FnMut(&Record<'_>) -> bool) {
        let segment_end = self.end;
        loop {
            if !self.find() {
                return;
            }
            let Some(reader) = self.reader.as_mut() else {
                return;
            };
            match reader.read_whole() {
                Ok(record) if record.lsn >= self.limit => return,
                Ok(record) => {
                    self.is_in_line = true;
                    let parsed = record.parse();
                    if parsed.is_ok_and(|record| !goes_on(&record)) {
                        return;
                    }
                }
                Err(end) if end.at >= segment_end && end.record < segment_end => return,
                Err(end) => self.look_after(end),
            }
        }
    }

    /// Stands before a record, or before what should be one.
    fn find(&mut self) -> bool {
        while !self.is_in_line {
            if self.page >= self.end {
                return false;
            }
            let Some(reader) = self.reader.as_mut() else {
                return false;
            };
            match reader.find_first() {
                Ok(at) if at >= self.end => return false,
                Ok(_) => return true,
                Err(_) => self.look_on_page(self.page_after(self.page)),
            }
        }
        true
    }

    fn page_after(&self, at: Lsn) -> Lsn {
        let page = self.shape.page_of(at).0;
        Lsn(page.saturating_add(u64::from(self.shape.page_bytes)))
    }

    /// A later page that does not go on with a record may begin with others.
    fn look_after(&mut self, end: WalEnd) {
        let broken = self.shape.page_of(end.at);
        let next = self.page_after(end.record);
        self.look_on_page(broken.max(next).max(self.page_after(self.page)));
    }

    fn look_on_page(&mut self, page: Lsn) {
        self.page = page;
        self.is_in_line = false;
        if let Some(reader) = self.reader.take() {
            self.reader = Some(WalReader::new(reader.into_pages(), self.shape, page));
        }
    }

    /// All bytes of the segment from `lsn` on.
    fn rest(&mut self, lsn: Lsn) -> Option<Vec<u8>> {
        let mut rest = Vec::new();
        let mut page = self.shape.page_of(lsn);
        let mut skipped = usize::try_from(lsn.0 - page.0).ok()?;
        while page < self.end {
            let bytes = self.reader.as_mut()?.pages_mut().page(page)?;
            rest.extend_from_slice(bytes.get(skipped..)?);
            skipped = 0;
            page = Lsn(page.0.checked_add(u64::from(self.shape.page_bytes))?);
        }
        Some(rest)
    }
}

impl Iterator for CopyRecords<'_> {
    type Item = RecordMark;

    fn next(&mut self) -> Option<RecordMark> {
        let segment_end = self.end;
        loop {
            if !self.find() {
                return None;
            }
            match self.reader.as_mut()?.read_whole() {
                Ok(record) => {
                    let mark = RecordMark {
                        lsn: record.lsn,
                        end: record.end,
                        what: MarkKind::Whole(record.header),
                    };
                    self.is_in_line = true;
                    return (mark.lsn < self.limit).then_some(mark);
                }
                Err(end) if end.at >= segment_end && end.record < segment_end => {
                    let rest = (end.record < self.limit).then(|| self.rest(end.record));
                    (self.page, self.is_in_line) = (self.end, false);
                    return Some(RecordMark {
                        lsn: end.record,
                        end: self.end,
                        what: MarkKind::Begun(rest??),
                    });
                }
                Err(end) => self.look_after(end),
            }
        }
    }
}

/// Both copies have records at the same place, and they are not the same.
pub(super) fn differ(
    shape: Shape,
    copies: &WalCopies,
    (one, other): (Candidate<'_>, Candidate<'_>),
    span: SegmentSpan,
) -> bool {
    if are_alike(shape, copies, (one, other)) {
        return false;
    }
    let mut one = CopyRecords::new(shape, copies, one, span).peekable();
    let mut other = CopyRecords::new(shape, copies, other, span).peekable();
    while let (Some(own), Some(theirs)) = (one.peek(), other.peek()) {
        if own == theirs {
            one.next();
            other.next();
            continue;
        }
        let (first, second) = if own.lsn <= theirs.lsn {
            (own, theirs)
        } else {
            (theirs, own)
        };
        if second.lsn < first.end {
            return true;
        }
        if own.lsn < theirs.lsn {
            one.next();
        } else {
            other.next();
        }
    }
    false
}

/// The bytes are the same as far as both reach.
fn are_alike(
    shape: Shape,
    copies: &WalCopies,
    (one, other): (Candidate<'_>, Candidate<'_>),
) -> bool {
    let mut one = OpenCopy::new(copies, one);
    let mut other = OpenCopy::new(copies, other);
    let segment = u64::from(shape.segment_bytes);
    for offset in (0..segment.div_ceil(PIECE_BYTES)).map(|piece| piece * PIECE_BYTES) {
        let (Some(one), Some(other)) = (one.piece(offset), other.piece(offset)) else {
            return false;
        };
        let both = one.len().min(other.len());
        if one.get(..both) != other.get(..both) {
            return false;
        }
        if both == 0 {
            return true;
        }
    }
    true
}

/// The records of a copy lead into another one of the next segment: the last ones of it, one that
/// lies in both, and the first of the next segment, which names the one before it.
pub(super) fn leads_into(
    shape: Shape,
    copies: &WalCopies,
    (one, next): (Candidate<'_>, Candidate<'_>),
    number: u64,
) -> bool {
    let span = SegmentSpan {
        number,
        limit: Lsn(u64::MAX),
    };
    let whole = CopyRecords::new(shape, copies, one, span).filter(RecordMark::is_whole);
    let Some(last) = whole.last() else {
        return false;
    };
    let pages = CopiesInLine::new(shape, copies, &[(number, one), (number + 1, next)]);
    let mut reader = WalReader::new(pages, shape, last.lsn);
    let boundary = span.end(&shape);
    loop {
        match reader.read_whole() {
            Ok(record) if record.lsn >= boundary => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
