//! Compressed values unpacked portion by portion: for those of which a part is lost, and for those
//! that are too large for memory.
//!
//! ```text
//! packed bytes, as they come ─► what is not understood yet (a few bytes) ─► window: the last 64 KiB, and what is new ─► raw bytes
//! ```
//!
//! Truth: `pg_lzcompress.c`, and the LZ4 block format.

use std::mem::take;

use super::decompress::DecompressError;
use crate::pglz::{MATCH_LONG, MATCH_MIN};

/// How far back a match reaches at most: 4095 bytes in pglz, 65535 in LZ4.
const WINDOW_BYTES: usize = 64 << 10;
/// Bytes that are gathered before they are given away.
const GIVEN_BYTES: usize = 256 << 10;
/// Shorter matches are not written in LZ4.
const LZ4_MATCH_MIN: usize = 4;
/// A length of four bits that is followed by more of it.
const LZ4_MORE: usize = 15;

/// Takes raw bytes.
type Give<'g> = dyn FnMut(&[u8]) + 'g;

/// A decompressor of one value that takes and gives it in portions.
pub struct Unpacker {
    way: Way,
    /// Bytes that did not come yet.
    raw_left: u64,
    /// Came, and are not understood without what comes next.
    pending: Vec<u8>,
    window: Vec<u8>,
    /// Bytes of the window that were given away.
    given: usize,
}

enum Way {
    /// The control bits that are left, and how many.
    Pglz(u8, u8),
    Lz4(Lz4),
}

/// What comes next.
#[derive(Clone, Copy)]
enum Lz4 {
    Token,
    /// More of the count of literals; then the length of the match, as the token has it.
    LiteralCount(usize, usize),
    Literals(usize, usize),
    Offset(usize),
    /// More of the length of a match.
    MatchLength(usize, usize),
    Match(usize, usize),
}

/// What became of one step.
enum Step {
    Done,
    /// More packed bytes are needed.
    Starved,
}

impl Unpacker {
    /// For a value of so many raw bytes. `method` is 0 for pglz and 1 for LZ4.
    pub fn new(method: u8, raw_size: u64) -> Result<Self, DecompressError> {
        let way = match method {
            0 => Way::Pglz(0, 0),
            1 => Way::Lz4(Lz4::Token),
            other => return Err(DecompressError::UnknownMethod(other)),
        };
        Ok(Unpacker {
            way,
            raw_left: raw_size,
            pending: Vec::new(),
            window: Vec::new(),
            given: 0,
        })
    }

    /// The next packed bytes; gives what they stand for, in portions, all but what the last call
    /// gives.
    pub fn feed(&mut self, packed: &[u8], give: &mut Give<'_>) -> Result<(), DecompressError> {
        let mut held = take(&mut self.pending);
        held.extend_from_slice(packed);
        let mut input = held.as_slice();
        let outcome = loop {
            if self.raw_left == 0 {
                break if input.is_empty() {
                    Ok(())
                } else {
                    Err(DecompressError::WrongLength)
                };
            }
            let step = match self.way {
                Way::Pglz(control, bits) => self.pglz(control, bits, &mut input),
                Way::Lz4(state) => self.lz4(state, &mut input),
            };
            match step {
                Ok(Step::Done) => self.give_most(give),
                Ok(Step::Starved) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.pending = input.to_vec();
        self.give_all(give);
        outcome
    }

    /// Bytes that did not come: none, if the value is whole.
    pub fn raw_left(&self) -> u64 {
        self.raw_left
    }

    fn give_most(&mut self, give: &mut Give<'_>) {
        if self.window.len() - self.given < GIVEN_BYTES {
            return;
        }
        self.give_all(give);
    }

    fn give_all(&mut self, give: &mut Give<'_>) {
        if let Some(new) = self.window.get(self.given..).filter(|new| !new.is_empty()) {
            give(new);
        }
        let old = self.window.len().saturating_sub(WINDOW_BYTES);
        self.window.drain(..old);
        self.given = self.window.len();
    }

    fn pglz(&mut self, control: u8, bits: u8, input: &mut &[u8]) -> Result<Step, DecompressError> {
        let Some((&first, rest)) = input.split_first() else {
            return Ok(Step::Starved);
        };
        if bits == 0 {
            *input = rest;
            self.way = Way::Pglz(first, 8);
            return Ok(Step::Done);
        }
        let is_match = control & 1 == 1;
        if !is_match {
            self.literals(&[first]);
            *input = rest;
        } else {
            let [first, second, rest @ ..] = *input else {
                return Ok(Step::Starved);
            };
            let mut rest = rest;
            let offset = usize::from(first & 0xF0) << 4 | usize::from(*second);
            let mut length = usize::from(first & 0x0F) + MATCH_MIN;
            if length == MATCH_LONG {
                let Some((&more, after)) = rest.split_first() else {
                    return Ok(Step::Starved);
                };
                length += usize::from(more);
                rest = after;
            }
            self.repeat(offset, length)?;
            *input = rest;
        }
        self.way = Way::Pglz(control >> 1, bits - 1);
        Ok(Step::Done)
    }

    fn lz4(&mut self, state: Lz4, input: &mut &[u8]) -> Result<Step, DecompressError> {
        let next = match state {
            Lz4::Match(offset, left) => {
                let length = left.min(GIVEN_BYTES);
                self.repeat(offset, length)?;
                match left - length {
                    0 => Lz4::Token,
                    left => Lz4::Match(offset, left),
                }
            }
            Lz4::Literals(0, length) => Lz4::Offset(length),
            Lz4::Literals(left, length) => {
                let count = left.min(input.len()).min(GIVEN_BYTES);
                if count == 0 {
                    return Ok(Step::Starved);
                }
                let (literals, rest) = input.split_at(count);
                self.literals(literals);
                *input = rest;
                Lz4::Literals(left - count, length)
            }
            Lz4::Offset(length) => {
                let Some((&offset, rest)) = input.split_first_chunk() else {
                    return Ok(Step::Starved);
                };
                *input = rest;
                let offset = usize::from(u16::from_le_bytes(offset));
                match length {
                    LZ4_MORE => Lz4::MatchLength(offset, length),
                    length => Lz4::Match(offset, length + LZ4_MATCH_MIN),
                }
            }
            Lz4::Token | Lz4::LiteralCount(..) | Lz4::MatchLength(..) => {
                let Some((&byte, rest)) = input.split_first() else {
                    return Ok(Step::Starved);
                };
                *input = rest;
                behind(state, byte)?
            }
        };
        self.way = Way::Lz4(next);
        Ok(Step::Done)
    }

    /// Bytes as they are, as far as the value reaches.
    fn literals(&mut self, bytes: &[u8]) {
        let left = usize::try_from(self.raw_left).unwrap_or(usize::MAX);
        let taken = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        self.window.extend_from_slice(taken);
        self.raw_left -= taken.len() as u64;
    }

    /// Bytes from further back, as far as the value reaches.
    fn repeat(&mut self, offset: usize, length: usize) -> Result<(), DecompressError> {
        let start = self
            .window
            .len()
            .checked_sub(offset)
            .filter(|_| offset > 0)
            .ok_or(DecompressError::Corrupt)?;
        let left = usize::try_from(self.raw_left).unwrap_or(usize::MAX);
        let length = length.min(left);
        let mut left = length;
        // The source may reach into what is being written: whole repetitions are taken at a time.
        while left > 0 {
            let count = left.min(self.window.len() - start);
            self.window.extend_from_within(start..start + count);
            left -= count;
        }
        self.raw_left -= length as u64;
        Ok(())
    }
}

/// What comes behind a byte that is a token or part of a length.
fn behind(state: Lz4, byte: u8) -> Result<Lz4, DecompressError> {
    let add = |sum: usize| {
        let sum = sum.checked_add(usize::from(byte));
        sum.ok_or(DecompressError::Corrupt)
    };
    let is_last = byte != u8::MAX;
    Ok(match state {
        Lz4::LiteralCount(count, length) if is_last => Lz4::Literals(add(count)?, length),
        Lz4::LiteralCount(count, length) => Lz4::LiteralCount(add(count)?, length),
        Lz4::MatchLength(offset, length) if is_last => {
            Lz4::Match(offset, add(length)?.saturating_add(LZ4_MATCH_MIN))
        }
        Lz4::MatchLength(offset, length) => Lz4::MatchLength(offset, add(length)?),
        _ => match (usize::from(byte >> 4), usize::from(byte & 15)) {
            (LZ4_MORE, length) => Lz4::LiteralCount(LZ4_MORE, length),
            (count, length) => Lz4::Literals(count, length),
        },
    })
}

/// What the beginning of a compressed value stands for, as far as it can be told; never more than
/// `raw_size` bytes.
pub fn decompress_prefix(method: u8, data: &[u8], raw_size: u64) -> Vec<u8> {
    let mut raw = Vec::new();
    if let Ok(mut unpacker) = Unpacker::new(method, raw_size) {
        // What was unpacked before the stream contradicted itself was right as far as anybody can
        // tell.
        let _outcome = unpacker.feed(data, &mut |bytes| raw.extend_from_slice(bytes));
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pglz;

    fn raw() -> Vec<u8> {
        // Noise, repetitions near and far, and a long run.
        let mut state = 7u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut raw: Vec<u8> = (0..50_000).map(|_| noise()).collect();
        raw.extend_from_within(100..40_000);
        raw.extend(std::iter::repeat_n(b'x', 400_000));
        raw.extend_from_within(49_000..60_000);
        raw
    }

    fn packed(method: u8, raw: &[u8]) -> Vec<u8> {
        match method {
            0 => pglz::compress(raw),
            _ => lz4_flex::block::compress(raw),
        }
    }

    #[test]
    fn any_portions_give_the_whole() {
        let raw = raw();
        for method in [0, 1] {
            let packed = packed(method, &raw);
            for portion in [1, 7, 1996, packed.len()] {
                let mut unpacker = Unpacker::new(method, raw.len() as u64).expect("a method");
                let mut found = Vec::new();
                for bytes in packed.chunks(portion) {
                    let fed = unpacker.feed(bytes, &mut |raw| found.extend_from_slice(raw));
                    fed.expect("a stream");
                }
                assert!(found == raw, "method {method}, portions of {portion}");
                assert_eq!(unpacker.raw_left(), 0);
            }
        }
    }

    #[test]
    fn a_beginning_gives_a_beginning() {
        let raw = raw();
        for method in [0, 1] {
            let packed = packed(method, &raw);
            let half = packed.get(..30_000).expect("more than that");
            let found = decompress_prefix(method, half, raw.len() as u64);
            assert!(raw.starts_with(&found) && found.len() > 20_000);
        }
    }

    #[test]
    fn lies_end_the_stream() {
        assert_eq!(decompress_prefix(0, &[0b10, b'a', 6, 2], 10), b"a");
        assert_eq!(decompress_prefix(1, &[0x10, b'a', 9, 0], 10), b"a");
        assert_eq!(decompress_prefix(1, &[0x1F, b'a', 1, 0, 255], 10), b"a");
        assert_eq!(decompress_prefix(2, b"abc", 10), b"");
        let mut unpacker = Unpacker::new(0, 1).expect("a method");
        let fed = unpacker.feed(&[0, b'a', b'b'], &mut |_| {});
        assert_eq!(fed, Err(DecompressError::WrongLength));
    }
}
