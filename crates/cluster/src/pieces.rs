//! A fork cut into pieces of whole pages, by their numbers.

use std::ops::Range;

use pgclinic_format::BlockNo;

use crate::build::Build;
use crate::files::ForkFiles;

/// Bytes of a piece.
const PIECE_BYTES: u64 = 1 << 20;

/// Some pages of one segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Path of the segment, from the root of the data directory.
    pub path: String,
    /// Where in the segment it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// Its first block, counted through the fork.
    pub first_block: BlockNo,
}

impl Piece {
    /// Its blocks, the last of which may be cut.
    pub fn blocks(&self, build: Build) -> Range<BlockNo> {
        let count = self.len.div_ceil(u64::from(build.block_size));
        let count = BlockNo::try_from(count).unwrap_or(BlockNo::MAX);
        self.first_block..self.first_block.saturating_add(count)
    }
}

/// The pieces of a fork.
#[derive(Debug)]
pub struct Pieces {
    /// Number of its first piece, path, bytes of whole pages, first block.
    segments: Vec<(u64, String, u64, u64)>,
    count: u64,
    piece_bytes: u64,
    page_bytes: u64,
}

impl Pieces {
    /// Of this fork.
    pub fn of(files: &ForkFiles, build: Build) -> Self {
        let page_bytes = u64::from(build.block_size);
        let piece_bytes = PIECE_BYTES / page_bytes * page_bytes;
        let mut pieces = Pieces {
            segments: Vec::new(),
            count: 0,
            piece_bytes,
            page_bytes,
        };
        for segment in &files.segments {
            // A page that is cut is read as far as it goes.
            let len = segment.len.min(build.segment_bytes);
            let first_block = u64::from(segment.number) * build.segment_blocks();
            let path = files.path(segment.number);
            pieces.segments.push((pieces.count, path, len, first_block));
            pieces.count += len.div_ceil(piece_bytes);
        }
        pieces
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The segment and offset of a block, if its first byte is there.
    pub fn place_of(&self, block: BlockNo) -> Option<(String, u64)> {
        let block = u64::from(block);
        let behind = self.segments.partition_point(|segment| segment.3 <= block);
        let (_, path, len, first) = self.segments.get(behind.checked_sub(1)?)?;
        let offset = (block - first) * self.page_bytes;
        (offset < *len).then(|| (path.clone(), offset))
    }

    /// The block is in some file.
    pub fn hold(&self, block: BlockNo) -> bool {
        self.place_of(block).is_some()
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.2).sum()
    }

    /// One of them, by its number.
    pub fn get(&self, number: u64) -> Option<Piece> {
        let behind = self.segments.partition_point(|segment| segment.0 <= number);
        let at = behind.checked_sub(1)?;
        let (first, path, len, first_block) = self.segments.get(at)?;
        let offset = (number - first) * self.piece_bytes;
        let len = len.checked_sub(offset)?.min(self.piece_bytes);
        Some(Piece {
            path: path.clone(),
            offset,
            len,
            first_block: BlockNo::try_from(first_block + offset / self.page_bytes).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{DatabaseDirectory, Segment};
    use pgclinic_format::Fork;

    #[test]
    fn every_byte_of_every_segment_is_in_one_piece() {
        let build = Build {
            segment_bytes: 3 << 20,
            ..Build::USUAL
        };
        let segments = [(0, 3 << 20), (2, (1 << 20) + 8192 + 100)];
        let files = ForkFiles {
            home: DatabaseDirectory {
                tablespace: pgclinic_format::oid::DEFAULT_TABLESPACE,
                database: 5,
                folder: "base/5".into(),
            },
            filenode: 7,
            fork: Fork::Main,
            temporary: None,
            segments: segments
                .map(|(number, len)| Segment { number, len })
                .to_vec(),
        };
        let pieces = Pieces::of(&files, build);
        let seen: Vec<(String, u64, u64, u32)> = (0..pieces.count())
            .filter_map(|number| pieces.get(number))
            .map(|piece| (piece.path, piece.offset, piece.len, piece.first_block))
            .collect();
        let path = |name: &str| format!("base/5/{name}");
        let expected = [
            (path("7"), 0, 1 << 20, 0),
            (path("7"), 1 << 20, 1 << 20, 128),
            (path("7"), 2 << 20, 1 << 20, 256),
            (path("7.2"), 0, 1 << 20, 768),
            (path("7.2"), 1 << 20, 8292, 896),
        ];
        assert_eq!(seen, expected);
        assert!(pieces.get(5).is_none());
        assert_eq!(pieces.place_of(129), Some((path("7"), (1 << 20) + 8192)));
        assert_eq!(pieces.place_of(769), Some((path("7.2"), 8192)));
        assert!(!pieces.hold(400) && !pieces.hold(1000));
    }
}
