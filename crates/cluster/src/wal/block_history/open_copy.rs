//! Pages of WAL out of one copy of a segment, and out of copies of segments in line.

use std::io::Read;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{PageHeader, Shape, WalPages};
use pgclinic_source::decompressed;

use super::wal_copies::{Candidate, WalCopies};

/// Bytes of one read.
pub(super) const PIECE_BYTES: u64 = 256 << 10;

/// A copy that is being read.
pub(super) struct OpenCopy<'a> {
    pub(super) candidate: Candidate<'a>,
    copies: &'a WalCopies,
    stream: Option<Stream>,
    piece: Vec<u8>,
    piece_at: Option<u64>,
    pub(super) bytes_read: u64,
}

/// A compressed copy, as far as it was read.
struct Stream {
    reader: Box<dyn Read + Send>,
    at: u64,
}

impl<'a> OpenCopy<'a> {
    pub(super) fn new(copies: &'a WalCopies, candidate: Candidate<'a>) -> Self {
        OpenCopy {
            candidate,
            copies,
            stream: None,
            piece: Vec::new(),
            piece_at: None,
            bytes_read: 0,
        }
    }

    /// The page that begins at `at`, which lies in this segment.
    pub(super) fn page(&mut self, at: Lsn, shape: &Shape) -> Option<&[u8]> {
        let Candidate { copy, until } = self.candidate;
        let end = at.0.checked_add(u64::from(shape.page_bytes))?;
        if until.is_some_and(|until| end > until.0) {
            return None;
        }
        let within = at.0 - shape.segment_of(at).0;
        let offset = within & !(PIECE_BYTES - 1);
        let from = usize::try_from(within - offset).ok()?;
        let until = from.checked_add(usize::try_from(shape.page_bytes).ok()?)?;
        let page = self.piece(offset)?.get(from..until)?;
        // A page of a later timeline than its file's belongs to another history.
        let header = PageHeader::parse(page)?;
        let is_foreign = header.magic == shape.magic && header.timeline > copy.timeline;
        (!is_foreign).then_some(page)
    }

    /// Up to [`PIECE_BYTES`] from an offset that is a multiple of them.
    pub(super) fn piece(&mut self, offset: u64) -> Option<&[u8]> {
        if self.piece_at != Some(offset) {
            self.read_piece(offset)?;
            self.bytes_read = self.bytes_read.saturating_add(self.piece.len() as u64);
        }
        Some(&self.piece)
    }

    fn read_piece(&mut self, offset: u64) -> Option<()> {
        let copy = self.candidate.copy;
        let directory = self.copies.directory_of(copy)?;
        self.piece_at = None;
        self.piece.resize(usize::try_from(PIECE_BYTES).ok()?, 0);
        if !copy.is_compressed {
            let read = directory
                .source
                .read_at(&copy.path, offset, &mut self.piece);
            self.piece.truncate(read.ok()?);
            self.piece_at = Some(offset);
            return Some(());
        }
        if self.stream.as_ref().is_none_or(|stream| stream.at > offset) {
            let reader = decompressed(&directory.source, &copy.path).ok()?;
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

/// One copy of each of some segments, and no others.
pub(super) struct CopiesInLine<'a> {
    shape: Shape,
    open: Vec<(u64, OpenCopy<'a>)>,
}

impl<'a> CopiesInLine<'a> {
    pub(super) fn new(
        shape: Shape,
        copies: &'a WalCopies,
        candidates: &[(u64, Candidate<'a>)],
    ) -> Self {
        let open = candidates.iter();
        let open = open.map(|(number, own)| (*number, OpenCopy::new(copies, *own)));
        CopiesInLine {
            shape,
            open: open.collect(),
        }
    }
}

impl WalPages for CopiesInLine<'_> {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        let number = self.shape.segment_number(at);
        let mut open = self.open.iter_mut();
        let (_, copy) = open.find(|(own, _)| *own == number)?;
        copy.page(at, &self.shape)
    }
}
