//! Pages of WAL out of whichever copy of a segment can be read.

use std::collections::BTreeMap;
use std::io::Read;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{PageHeader, Shape, WalPages};
use pgclinic_source::decompressed;

use super::wal_copies::{SegmentCopy, WalCopies};
use crate::wal::files::Timelines;

/// Bytes of one read.
const PIECE_BYTES: u64 = 256 << 10;

/// Reads pages on the way through the timelines; of each segment from one copy at a time.
pub(super) struct CopiedPages<'a> {
    shape: Shape,
    copies: &'a WalCopies,
    timelines: &'a Timelines,
    /// Which copy of a segment is read, where it is not the first.
    choices: BTreeMap<u64, usize>,
    open: Option<OpenSegment<'a>>,
    /// The last page that was asked for.
    asked: Lsn,
    pub(super) bytes_read: u64,
}

/// The copy that is being read.
struct OpenSegment<'a> {
    number: u64,
    copy: &'a SegmentCopy,
    /// Of an older timeline than the segment's: what it holds counts up to here.
    until: Option<Lsn>,
    stream: Option<Stream>,
    piece: Vec<u8>,
    piece_at: Option<u64>,
}

/// A compressed copy, as far as it was read.
struct Stream {
    reader: Box<dyn Read + Send>,
    at: u64,
}

impl<'a> CopiedPages<'a> {
    pub(super) fn new(shape: Shape, copies: &'a WalCopies, timelines: &'a Timelines) -> Self {
        CopiedPages {
            shape,
            copies,
            timelines,
            choices: BTreeMap::new(),
            open: None,
            asked: Lsn(0),
            bytes_read: 0,
        }
    }

    /// The copies of a segment, the likeliest first: those of the newest timeline that has begun by
    /// then, and behind them those of the timelines before, which hold its beginning.
    fn candidates(&self, number: u64) -> Vec<(&'a SegmentCopy, Option<Lsn>)> {
        let Some(expected) = self.timelines.expected(number) else {
            return Vec::new();
        };
        let of = |timeline| self.copies.of(number, timeline);
        let mut all: Vec<_> = of(expected).map(|copy| (copy, None)).collect();
        let older = (1..expected).rev();
        for timeline in older.filter(|timeline| self.timelines.passes(*timeline)) {
            let left = self.timelines.left(timeline, &self.copies.histories);
            all.extend(of(timeline).map(|copy| (copy, left.or(Some(Lsn(0))))));
        }
        all
    }

    fn open(&mut self, number: u64) -> Option<()> {
        let choice = self.choices.get(&number).copied().unwrap_or(0);
        let (copy, until) = *self.candidates(number).get(choice)?;
        self.open = Some(OpenSegment {
            number,
            copy,
            until,
            stream: None,
            piece: Vec::new(),
            piece_at: None,
        });
        Some(())
    }

    /// Turns to another copy of one of the segments that the record at `record` lies in, as far as
    /// it was read. False where there is none that was not tried.
    pub(super) fn try_another_copy(&mut self, record: Lsn) -> bool {
        let first = self.shape.segment_number(record);
        let last = self.shape.segment_number(self.asked).max(first);
        for number in (first..=last).rev() {
            let next = self.choices.get(&number).copied().unwrap_or(0) + 1;
            if next < self.candidates(number).len() {
                self.choices.insert(number, next);
                self.open = None;
                return true;
            }
        }
        false
    }

    /// The copy that is read of a segment.
    pub(super) fn chosen(&self, number: u64) -> Option<&'a SegmentCopy> {
        let choice = self.choices.get(&number).copied().unwrap_or(0);
        let candidates = self.candidates(number);
        candidates.get(choice).map(|(copy, _)| *copy)
    }

    /// The file that holds `at`, in words.
    pub(super) fn words_at(&self, at: Lsn) -> Option<String> {
        let copy = self.chosen(self.shape.segment_number(at))?;
        Some(self.copies.words(copy))
    }

    fn fetch(&mut self, at: Lsn) -> Option<()> {
        let number = self.shape.segment_number(at);
        if self.open.as_ref().is_none_or(|open| open.number != number) {
            self.open(number)?;
        }
        let copies = self.copies;
        let open = self.open.as_mut()?;
        let end = at.0.checked_add(u64::from(self.shape.page_bytes))?;
        if open.until.is_some_and(|until| end > until.0) {
            return None;
        }
        let offset = (at.0 - self.shape.segment_of(at).0) & !(PIECE_BYTES - 1);
        if open.piece_at != Some(offset) {
            open.read_piece(copies, offset)?;
            self.bytes_read += open.piece.len() as u64;
        }
        Some(())
    }
}

impl OpenSegment<'_> {
    fn read_piece(&mut self, copies: &WalCopies, offset: u64) -> Option<()> {
        let directory = copies.directory_of(self.copy)?;
        self.piece_at = None;
        self.piece.resize(usize::try_from(PIECE_BYTES).ok()?, 0);
        if !self.copy.is_compressed {
            let path = &self.copy.path;
            let read = directory.source.read_at(path, offset, &mut self.piece);
            self.piece.truncate(read.ok()?);
            self.piece_at = Some(offset);
            return Some(());
        }
        if self.stream.as_ref().is_none_or(|stream| stream.at > offset) {
            let reader = decompressed(&directory.source, &self.copy.path).ok()?;
            self.stream = Some(Stream { reader, at: 0 });
        }
        let stream = self.stream.as_mut()?;
        // Pieces are as long as each other, so that one of them begins at every offset.
        while stream.at <= offset {
            let count = fill(&mut stream.reader, &mut self.piece);
            stream.at = stream.at.saturating_add(PIECE_BYTES);
            if stream.at > offset {
                self.piece.truncate(count);
            }
        }
        self.piece_at = Some(offset);
        Some(())
    }
}

/// Reads until the buffer is full or nothing comes any more; what came before an error counts.
fn fill(reader: &mut impl Read, buf: &mut [u8]) -> usize {
    let mut filled = 0usize;
    while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(count) => filled = filled.saturating_add(count),
        }
    }
    filled
}

impl WalPages for CopiedPages<'_> {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        self.asked = at;
        self.fetch(at)?;
        let open = self.open.as_ref()?;
        let within = at.0 - self.shape.segment_of(at).0;
        let from = usize::try_from(within - open.piece_at?).ok()?;
        let until = from.checked_add(usize::try_from(self.shape.page_bytes).ok()?)?;
        let page = open.piece.get(from..until)?;
        // A page of a later timeline than its file's belongs to another history.
        let header = PageHeader::parse(page)?;
        let is_foreign = header.magic == self.shape.magic && header.timeline > open.copy.timeline;
        (!is_foreign).then_some(page)
    }
}
