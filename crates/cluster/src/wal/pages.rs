//! Pages of WAL out of the segments of `pg_wal`, read in large pieces.

use std::sync::Arc;

use pgclinic_format::Lsn;
use pgclinic_format::wal::{Shape, WalPages};
use pgclinic_source::Source;

use crate::error::ReadGap;
use crate::wal::files::{Timelines, WalFiles};

/// Bytes of one read.
const PIECE_BYTES: u64 = 256 << 10;

/// Reads pages from the file that the server would choose for each segment.
pub struct SegmentPages<'a> {
    source: &'a dyn Source,
    shape: Shape,
    files: Arc<WalFiles>,
    timelines: Timelines,
    file: Option<(u64, String)>,
    piece: Vec<u8>,
    piece_at: Option<Lsn>,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// What could not be read though it is there.
    pub troubles: Vec<ReadGap>,
}

impl<'a> SegmentPages<'a> {
    /// On the way through `timelines`.
    pub fn new(
        source: &'a dyn Source,
        shape: Shape,
        files: Arc<WalFiles>,
        timelines: Timelines,
    ) -> Self {
        SegmentPages {
            source,
            shape,
            files,
            timelines,
            file: None,
            piece: Vec::new(),
            piece_at: None,
            bytes_read: 0,
            troubles: Vec::new(),
        }
    }

    /// The path of the segment that holds `at`, if there is such a file.
    pub fn path_of(&self, at: Lsn) -> Option<String> {
        let number = self.shape.segment_number(at);
        let file = self.timelines.choose(&self.files, number)?;
        Some(format!(
            "pg_wal/{}",
            self.shape.segment_name(file.timeline, number)
        ))
    }

    fn fetch(&mut self, piece: Lsn) -> Option<()> {
        let number = self.shape.segment_number(piece);
        if self.file.as_ref().is_none_or(|(own, _)| *own != number) {
            self.file = Some((number, self.path_of(piece)?));
        }
        let (_, path) = self.file.as_ref()?;
        let offset = piece.0 - self.shape.segment_of(piece).0;
        self.piece_at = None;
        self.piece.resize(usize::try_from(PIECE_BYTES).ok()?, 0);
        match self.source.read_at(path, offset, &mut self.piece) {
            Ok(count) => {
                self.bytes_read += count as u64;
                self.piece.truncate(count);
                self.piece_at = Some(piece);
                Some(())
            }
            Err(error) => {
                let trouble = ReadGap::new(path.clone(), error);
                if !self.troubles.contains(&trouble) {
                    self.troubles.push(trouble);
                }
                None
            }
        }
    }
}

impl WalPages for SegmentPages<'_> {
    fn page(&mut self, at: Lsn) -> Option<&[u8]> {
        let piece = Lsn(at.0 & !(PIECE_BYTES - 1));
        if self.piece_at != Some(piece) {
            self.fetch(piece)?;
        }
        let from = usize::try_from(at.0 - piece.0).ok()?;
        let until = from.checked_add(usize::try_from(self.shape.page_bytes).ok()?)?;
        self.piece.get(from..until)
    }
}
