//! Frames of LZ4, one behind the other: those of today, those that hold nothing to unpack, and
//! those of `lz4 -l`.
//!
//! ```text
//! today:    04 22 4d 18, head, blocks, end mark, checksum
//! skipped:  5? 2a 4d 18, length 4, bytes
//! of old:   02 21 4c 18, (length 4, block of up to 8 MiB unpacked)*, until the file or another frame begins
//! ```
//!
//! Truth: `lz4_Frame_format.md` of LZ4. Anything else behind a frame is an error, as for `lz4 -t`.

use std::io::{self, BufRead, Read};

use lz4_flex::block::decompress_into;
use lz4_flex::frame::FrameDecoder;

use super::peek_reader::PeekReader;

/// A frame of today.
pub(super) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// A frame of `lz4 -l`.
pub(super) const LEGACY_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// Bytes that a block of old unpacks to, at most.
const LEGACY_BLOCK: usize = 8 << 20;
/// `LZ4_compressBound` of them. A length above it is the magic of another frame.
const LEGACY_PACKED: usize = LEGACY_BLOCK + LEGACY_BLOCK / 255 + 16;

/// The magic of a frame, of LZ4 or zstd, that is passed over.
pub(super) fn is_skipped(magic: &[u8]) -> bool {
    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// A reader of frames of LZ4, old and new.
pub(super) struct Lz4<R: Read> {
    frames: FrameDecoder<PeekReader<R>>,
    at: At,
    packed: Vec<u8>,
    /// A block of old, and how much of it was given.
    block: Vec<u8>,
    given: usize,
    len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Border,
    Frame,
    Legacy,
    End,
}

impl<R: BufRead> Lz4<R> {
    pub(super) fn of(packed: R) -> Self {
        Lz4 {
            frames: FrameDecoder::new(PeekReader::of(packed)),
            at: At::Border,
            packed: Vec::new(),
            block: Vec::new(),
            given: 0,
            len: 0,
        }
    }

    /// What begins where a frame may begin.
    fn next_frame(&mut self) -> io::Result<At> {
        let packed = self.frames.get_mut();
        let head = packed.look()?;
        if head.is_empty() {
            return Ok(At::End);
        }
        if head == MAGIC {
            return Ok(At::Frame);
        }
        if head == LEGACY_MAGIC {
            packed.take_head(head_bytes());
            return Ok(At::Legacy);
        }
        if is_skipped(head) {
            packed.take_head(head_bytes());
            let mut len = [0; 4];
            packed.read_exact(&mut len)?;
            let len = u64::from(u32::from_le_bytes(len));
            let passed = io::copy(&mut packed.take(len), &mut io::sink())?;
            return if passed == len {
                Ok(At::Border)
            } else {
                Err(cut())
            };
        }
        let why = "where a frame of LZ4 must begin stands something else";
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Unpacks the next block of old; says where that leads.
    fn next_block(&mut self) -> io::Result<At> {
        let packed = self.frames.get_mut();
        let head = packed.look()?;
        if head.is_empty() {
            return Ok(At::End);
        }
        let Some(head) = head.first_chunk::<4>() else {
            return Err(cut());
        };
        let len = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
        if len > LEGACY_PACKED {
            return Ok(At::Border);
        }
        packed.take_head(head_bytes());
        self.packed.clear();
        packed.take(len as u64).read_to_end(&mut self.packed)?;
        if self.packed.len() < len {
            return Err(cut());
        }
        self.block.resize(LEGACY_BLOCK, 0);
        let unpacked = decompress_into(&self.packed, &mut self.block);
        self.len = unpacked.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.given = 0;
        Ok(At::Legacy)
    }

    /// Bytes of the block of old that were not given yet.
    fn give(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.block.get(self.given..self.len).unwrap_or_default();
        let count = rest.read(buf)?;
        self.given = self.given.saturating_add(count);
        Ok(count)
    }
}

/// Bytes of every magic.
fn head_bytes() -> usize {
    MAGIC.len()
}

fn cut() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "it was truncated in a frame of LZ4",
    )
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match self.at {
                At::Border => self.at = self.next_frame()?,
                At::Frame => match self.frames.read(buf)? {
                    // The decoder ends a frame in silence where the next block is not there any
                    // more.
                    0 if self.frames.get_ref().is_at_end() => return Err(cut()),
                    0 => self.at = At::Border,
                    count => return Ok(count),
                },
                At::Legacy => match self.give(buf)? {
                    0 => self.at = self.next_block()?,
                    count => return Ok(count),
                },
                At::End => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;
    use lz4_flex::frame::{FrameEncoder, FrameInfo};
    use std::io::Write;

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let info = FrameInfo::new().content_checksum(true);
        let mut packed = FrameEncoder::with_frame_info(info, Vec::new());
        packed.write_all(bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn skipped(len: u32) -> Vec<u8> {
        let mut bytes = vec![0x5a, 0x2a, 0x4d, 0x18];
        bytes.extend(len.to_le_bytes());
        bytes.resize(bytes.len() + len as usize, b'x');
        bytes
    }

    fn legacy(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = LEGACY_MAGIC.to_vec();
        for block in blocks {
            let packed = lz4_flex::block::compress(block);
            bytes.extend((packed.len() as u32).to_le_bytes());
            bytes.extend(packed);
        }
        bytes
    }

    fn read(packed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut all = Vec::new();
        let read = Lz4::of(packed).read_to_end(&mut all);
        (all, read.err().map(|error| error.to_string()))
    }

    #[test]
    fn frames_of_every_kind_follow_each_other() {
        let all = [
            skipped(0),
            frame(b"one "),
            skipped(700),
            legacy(&[b"two ", &[b' '; 100_000], b"three "]),
            frame(b""),
            frame(b"four"),
            skipped(3),
        ];
        let expected = [&b"one two "[..], &[b' '; 100_000], b"three four"].concat();
        let (unpacked, error) = read(&all.concat());
        assert_eq!(error, None);
        assert!(unpacked == expected);
    }

    #[test]
    fn a_block_that_does_not_shrink_is_read() {
        let mut state = 1u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let block: Vec<u8> = (0..LEGACY_BLOCK).map(|_| noise()).collect();
        let packed = legacy(&[&block]);
        assert!(packed.len() > LEGACY_BLOCK + 8, "it grew");
        let (unpacked, error) = read(&packed);
        assert_eq!(error, None);
        assert!(unpacked == block);
    }

    #[test]
    fn a_wrong_checksum_is_told() {
        let mut packed = frame(&[7; 5000]);
        if let Some(last) = packed.last_mut() {
            *last ^= 1;
        }
        let (unpacked, error) = read(&packed);
        assert_eq!(unpacked, [7; 5000]);
        assert!(error.is_some());
    }

    /// Every cut but that between two blocks of old, which nothing marks.
    #[test]
    fn a_cut_is_told_wherever_it_is() {
        let whole = frame(&[7; 5000]);
        for len in 1..whole.len() {
            assert!(read(&whole[..len]).1.is_some(), "{len}");
        }
        let whole = skipped(20);
        for len in 1..whole.len() {
            assert!(read(&whole[..len]).1.is_some(), "{len}");
        }
        let whole = legacy(&[&[7; 5000]]);
        for len in 5..whole.len() {
            assert!(read(&whole[..len]).1.is_some(), "{len}");
        }
    }

    #[test]
    fn rubbish_is_told_and_takes_no_room() {
        for behind in [&[0; 100][..], b"rubbish", b"abc"] {
            let (unpacked, error) = read(&[&frame(b"one")[..], behind].concat());
            assert_eq!(unpacked, b"one");
            assert!(error.is_some(), "{behind:?}");
        }
        let lying = [
            &LEGACY_MAGIC[..],
            &(LEGACY_PACKED as u32).to_le_bytes(),
            b"x",
        ]
        .concat();
        assert!(
            read(&lying)
                .1
                .is_some_and(|error| error.contains("truncated"))
        );
        let nothing = [&LEGACY_MAGIC[..], &[0; 4]].concat();
        assert!(read(&nothing).1.is_some());
    }
}
