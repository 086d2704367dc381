//! Follows a compressed value piece by piece: says whether it unpacks to the length that it
//! promises, and holds none of it.
//!
//! Truth: `pg_lzcompress.c`; the LZ4 block format.

use super::DecompressError;
use crate::pglz::{MATCH_LONG, MATCH_MIN};

/// The shortest match of LZ4, and the length that more bytes are added to.
const LZ4_MATCH_MIN: u64 = 4;
const LZ4_LONG: u64 = 15;

/// Where the walk stands.
#[derive(Clone, Copy, Debug)]
enum At {
    /// pglz: before a control byte.
    Control,
    /// pglz: before an item.
    Item { control: u8, bit: u8 },
    /// pglz: behind the first byte of a match.
    Match { control: u8, bit: u8, first: u8 },
    /// pglz: before the byte that makes a match longer.
    Longer { control: u8, bit: u8, offset: u64 },
    /// LZ4: before a token.
    Token,
    /// LZ4: in the length of literals.
    LiteralLength { token: u8, length: u64 },
    /// LZ4: in literals.
    Literals { token: u8, left: u64 },
    /// LZ4: before an offset, or at the end.
    Offset { token: u8 },
    /// LZ4: in an offset.
    OffsetHigh { token: u8, low: u8 },
    /// LZ4: in the length of a match.
    MatchLength { length: u64 },
}

/// A value of which pieces come one after the other.
#[derive(Clone, Debug)]
pub struct PackedWalk {
    at: At,
    raw_size: u64,
    produced: u64,
}

impl PackedWalk {
    /// Of a value compressed by `method`, 0 pglz or 1 LZ4, that promises so many bytes.
    pub fn new(method: u8, raw_size: u64) -> Result<Self, DecompressError> {
        let at = match method {
            0 => At::Control,
            1 => At::Token,
            other => return Err(DecompressError::UnknownMethod(other)),
        };
        Ok(PackedWalk {
            at,
            raw_size,
            produced: 0,
        })
    }

    /// Takes the next piece.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most the length of a piece"
    )]
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), DecompressError> {
        let mut rest = piece;
        while let Some((byte, behind)) = rest.split_first() {
            rest = match self.at {
                At::Literals { token, left } => {
                    let here = left.min(rest.len() as u64);
                    self.produce(here)?;
                    self.at = literals(token, left - here);
                    rest.get(here as usize..).unwrap_or_default()
                }
                at => {
                    self.at = self.step(at, *byte)?;
                    behind
                }
            };
        }
        Ok(())
    }

    /// No more pieces come.
    pub fn finish(self) -> Result<(), DecompressError> {
        match self.at {
            At::Control | At::Item { .. } | At::Offset { .. } if self.produced == self.raw_size => {
                Ok(())
            }
            At::Control | At::Item { .. } | At::Offset { .. } => Err(DecompressError::WrongLength),
            _ => Err(DecompressError::Corrupt),
        }
    }

    fn step(&mut self, at: At, byte: u8) -> Result<At, DecompressError> {
        Ok(match at {
            At::Control => {
                self.must_go_on()?;
                At::Item {
                    control: byte,
                    bit: 0,
                }
            }
            At::Item { control, bit } => {
                self.must_go_on()?;
                if control >> bit & 1 == 1 {
                    let first = byte;
                    return Ok(At::Match {
                        control,
                        bit,
                        first,
                    });
                }
                self.produced += 1;
                next_item(control, bit)
            }
            At::Match {
                control,
                bit,
                first,
            } => {
                let offset = u64::from(first & 0xF0) << 4 | u64::from(byte);
                let length = u64::from(first & 0x0F) + MATCH_MIN as u64;
                if length == MATCH_LONG as u64 {
                    return Ok(At::Longer {
                        control,
                        bit,
                        offset,
                    });
                }
                self.copy(offset, length)?;
                next_item(control, bit)
            }
            At::Longer {
                control,
                bit,
                offset,
            } => {
                self.copy(offset, MATCH_LONG as u64 + u64::from(byte))?;
                next_item(control, bit)
            }
            At::Token => match u64::from(byte >> 4) {
                LZ4_LONG => At::LiteralLength {
                    token: byte,
                    length: LZ4_LONG,
                },
                length => literals(byte, length),
            },
            At::LiteralLength { token, length } => match byte {
                255 => At::LiteralLength {
                    token,
                    length: length + 255,
                },
                last => literals(token, length + u64::from(last)),
            },
            At::Literals { token, left } => {
                self.produce(1)?;
                literals(token, left.saturating_sub(1))
            }
            At::Offset { token } => At::OffsetHigh { token, low: byte },
            At::OffsetHigh { token, low } => {
                self.must_reach(u64::from(u16::from_le_bytes([low, byte])))?;
                let length = LZ4_MATCH_MIN + u64::from(token & 0x0F);
                if token & 0x0F == 0x0F {
                    return Ok(At::MatchLength { length });
                }
                self.produce(length)?;
                At::Token
            }
            At::MatchLength { length } => {
                let length = length + u64::from(byte);
                if byte == 255 {
                    return Ok(At::MatchLength { length });
                }
                self.produce(length)?;
                At::Token
            }
        })
    }

    /// The value is whole, and more bytes come.
    fn must_go_on(&self) -> Result<(), DecompressError> {
        let goes_on = self.produced < self.raw_size;
        goes_on.then_some(()).ok_or(DecompressError::WrongLength)
    }

    fn must_reach(&self, offset: u64) -> Result<(), DecompressError> {
        let is_there = offset > 0 && offset <= self.produced;
        is_there.then_some(()).ok_or(DecompressError::Corrupt)
    }

    /// pglz: a match that leads beyond the end is cut there.
    fn copy(&mut self, offset: u64, length: u64) -> Result<(), DecompressError> {
        self.must_reach(offset)?;
        self.produced = (self.produced + length).min(self.raw_size);
        Ok(())
    }

    /// LZ4: nothing may lead beyond the end.
    fn produce(&mut self, length: u64) -> Result<(), DecompressError> {
        self.produced += length;
        let fits = self.produced <= self.raw_size;
        fits.then_some(()).ok_or(DecompressError::WrongLength)
    }
}

fn next_item(control: u8, bit: u8) -> At {
    match bit {
        7 => At::Control,
        _ => At::Item {
            control,
            bit: bit + 1,
        },
    }
}

fn literals(token: u8, left: u64) -> At {
    match left {
        0 => At::Offset { token },
        _ => At::Literals { token, left },
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        reason = "a test that panics has failed"
    )]

    use super::*;
    use crate::datum::decompress;
    use crate::pglz;

    fn walk(method: u8, data: &[u8], raw_size: usize, piece: usize) -> Result<(), DecompressError> {
        let mut walk = PackedWalk::new(method, raw_size as u64)?;
        data.chunks(piece).try_for_each(|piece| walk.feed(piece))?;
        walk.finish()
    }

    /// A value whose bytes repeat now and then.
    fn value(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32
        };
        let mut value = Vec::new();
        while value.len() < len {
            let from = (next() as usize) % (value.len() + 1);
            let again = value.get(from..).unwrap_or_default().to_vec();
            value.extend(again.iter().take(next() as usize % 600));
            value.push(next() as u8);
        }
        value.truncate(len);
        value
    }

    #[test]
    fn it_says_what_unpacking_says() {
        for (seed, len) in (1..60).zip([0, 1, 5, 30, 300, 4000, 70_000].into_iter().cycle()) {
            let raw = value(seed, len);
            for (method, packed) in [
                (0, pglz::compress(&raw)),
                (1, lz4_flex::block::compress(&raw)),
            ] {
                for hurt in 0..40u64 {
                    let (mut data, mut size) = (packed.clone(), raw.len());
                    let at = (seed * 31 + hurt * 7919) as usize % data.len().max(1);
                    match hurt % 4 {
                        0 if hurt > 0 => data.truncate(at),
                        1 => data
                            .iter_mut()
                            .skip(at)
                            .take(1)
                            .for_each(|byte| *byte ^= 1 << (hurt % 8)),
                        2 => size = (size + hurt as usize).saturating_sub(20),
                        3 => data.push(hurt as u8),
                        _ => {}
                    }
                    let expected = decompress(method, &data, size).map(drop);
                    let found = walk(method, &data, size, 1 + hurt as usize * 13);
                    assert_eq!(
                        found.is_ok(),
                        expected.is_ok(),
                        "{method} {seed} {hurt}: {found:?} {expected:?}"
                    );
                }
            }
        }
    }
}
