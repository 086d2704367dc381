//! `INCREMENTAL.<file>`: the blocks of one segment that changed since an earlier backup (PostgreSQL
//! 17 and later).
//!
//! ```text
//! magic u32 | blocks u32 | truncation_block_length u32 | block numbers u32 × blocks | zeros up to a block | blocks
//! ```
//!
//! Without blocks nothing follows the head. Numbers count within the segment and ascend. The
//! segment is at least `truncation_block_length` blocks long: what no later backup has of them, an
//! earlier one has. Truth: `sendFile` in `src/backend/backup/basebackup.c`,
//! `make_incremental_rfile` in `src/bin/pg_combinebackup/reconstruct.c`.

use std::fmt;

/// What names of such files begin with.
pub const PREFIX: &str = "INCREMENTAL.";

/// `INCREMENTAL_MAGIC`.
pub const MAGIC: u32 = 0xd3ae_1f0d;

/// Bytes before the block numbers.
pub const HEAD_BYTES: usize = 12;

/// The numbers in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// How many blocks the file holds.
    pub blocks: u32,
    /// `truncation_block_length`.
    pub truncation_blocks: u32,
}

/// Why these are no changed blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Fewer bytes than the head or the numbers take.
    Cut,
    /// Another magic number.
    Magic {
        /// What stands there.
        found: u32,
    },
    /// More blocks than a segment has.
    TooMany {
        /// What stands there.
        blocks: u32,
    },
    /// A segment of this many blocks does not exist.
    TooLong {
        /// What stands there.
        truncation_blocks: u32,
    },
    /// A number that lies behind the segment's end, or does not ascend.
    Number {
        /// The number.
        block: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Cut => f.write_str("it ends in its list of block numbers"),
            Fault::Magic { found } => write!(f, "its magic number is {found:08x}, not {MAGIC:08x}"),
            Fault::TooMany { blocks } => {
                write!(f, "it claims {blocks} blocks, more than a segment has")
            }
            Fault::TooLong { truncation_blocks } => {
                write!(
                    f,
                    "it claims a segment of {truncation_blocks} blocks, more than one has"
                )
            }
            Fault::Number { block } => {
                write!(
                    f,
                    "block number {block} lies past the segment's end or does not ascend"
                )
            }
        }
    }
}

impl Head {
    /// Reads the first bytes of a file; `segment_blocks` is the length of a full segment.
    pub fn parse(bytes: &[u8], segment_blocks: u32) -> Result<Self, Fault> {
        let word = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let (Some(magic), Some(blocks), Some(truncation_blocks)) = (word(0), word(4), word(8))
        else {
            return Err(Fault::Cut);
        };
        if magic != MAGIC {
            return Err(Fault::Magic { found: magic });
        }
        if blocks > segment_blocks {
            return Err(Fault::TooMany { blocks });
        }
        if truncation_blocks > segment_blocks {
            return Err(Fault::TooLong { truncation_blocks });
        }
        Ok(Head {
            blocks,
            truncation_blocks,
        })
    }

    /// Bytes of the block numbers.
    pub fn numbers_bytes(self) -> u64 {
        u64::from(self.blocks) * 4
    }

    /// Where the first block stands.
    pub fn header_bytes(self, block_bytes: u32) -> u64 {
        let head = HEAD_BYTES as u64 + self.numbers_bytes();
        match self.blocks {
            0 => head,
            _ => head.next_multiple_of(u64::from(block_bytes.max(1))),
        }
    }

    /// The block numbers, from the bytes behind the head.
    pub fn numbers(self, bytes: &[u8], segment_blocks: u32) -> Result<Vec<u32>, Fault> {
        let wanted = usize::try_from(self.numbers_bytes()).unwrap_or(usize::MAX);
        let bytes = bytes.get(..wanted).ok_or(Fault::Cut)?;
        let (words, _) = bytes.as_chunks::<4>();
        let mut numbers: Vec<u32> = Vec::with_capacity(words.len());
        for word in words {
            let block = u32::from_le_bytes(*word);
            if block >= segment_blocks || numbers.last().is_some_and(|last| *last >= block) {
                return Err(Fault::Number { block });
            }
            numbers.push(block);
        }
        Ok(numbers)
    }

    /// How long the segment is, in blocks, with the last of the numbers.
    pub fn length_blocks(self, last: Option<u32>) -> u32 {
        let behind = last.map_or(0, |block| block.saturating_add(1));
        self.truncation_blocks.max(behind)
    }
}

/// A file from its parts: for tests and for what makes backups in memory.
pub fn build(truncation_blocks: u32, blocks: &[(u32, &[u8])], block_bytes: u32) -> Vec<u8> {
    let head = Head {
        blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
        truncation_blocks,
    };
    let mut bytes = Vec::new();
    for word in [MAGIC, head.blocks, head.truncation_blocks] {
        bytes.extend(word.to_le_bytes());
    }
    for (number, _) in blocks {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(
        usize::try_from(head.header_bytes(block_bytes)).unwrap_or(0),
        0,
    );
    for (_, block) in blocks {
        bytes.extend_from_slice(block);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read() {
        let page = vec![7; 8192];
        let bytes = build(9, &[(2, &page), (10, &page)], 8192);
        let head = Head::parse(&bytes, 131_072).expect("a head");
        assert_eq!((head.blocks, head.truncation_blocks), (2, 9));
        assert_eq!(head.header_bytes(8192), 8192);
        assert_eq!(bytes.len(), 3 * 8192);
        let numbers = head
            .numbers(&bytes[HEAD_BYTES..], 131_072)
            .expect("numbers");
        assert_eq!(numbers, [2, 10]);
        assert_eq!(head.length_blocks(numbers.last().copied()), 11);
        assert_eq!(
            build(9, &[], 8192).len(),
            HEAD_BYTES,
            "no padding without blocks"
        );
    }

    #[test]
    fn lies_are_told() {
        let sound = build(9, &[(2, &[]), (10, &[])], 8192);
        let changed = |at: usize, word: u32| {
            let mut bytes = sound.clone();
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            bytes
        };
        assert_eq!(Head::parse(&sound[..11], 100), Err(Fault::Cut));
        assert_eq!(
            Head::parse(&changed(0, 1), 100),
            Err(Fault::Magic { found: 1 })
        );
        assert_eq!(
            Head::parse(&changed(4, 101), 100),
            Err(Fault::TooMany { blocks: 101 })
        );
        let long = Fault::TooLong {
            truncation_blocks: u32::MAX,
        };
        assert_eq!(Head::parse(&changed(8, u32::MAX), 100), Err(long));
        let head = Head::parse(&sound, 100).expect("a head");
        let numbers = |bytes: &[u8]| head.numbers(&bytes[HEAD_BYTES..], 100);
        assert_eq!(
            numbers(&changed(16, 2)),
            Err(Fault::Number { block: 2 }),
            "twice"
        );
        assert_eq!(
            numbers(&changed(16, 100)),
            Err(Fault::Number { block: 100 })
        );
        assert_eq!(numbers(&sound[..19]), Err(Fault::Cut));
    }
}
