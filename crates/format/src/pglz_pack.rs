//! pglz as the server packs: the same bytes, so that a trial tells what a table would take.
//!
//! A match is looked for among the places of the last 4,094 bytes that begin with the same four
//! bytes, the newest first, and the longest so far wins; what counts as good enough falls by a
//! tenth with each place that is tried. Truth: `pglz_compress` in `src/common/pg_lzcompress.c` with
//! `PGLZ_strategy_default`.

/// Shorter values are left alone.
const INPUT_MIN: usize = 32;
/// Without a match in so many bytes it is given up.
const FIRST_SUCCESS_BY: usize = 1024;
/// Packed bytes must be fewer than so many of a hundred.
const RATE_MAX: usize = 75;
const MATCH_GOOD: usize = 128;
const MATCH_MIN: usize = 3;
const MATCH_LONG: usize = 18;
const MATCH_MAX: usize = 273;
const OFFSET_END: usize = 0x0FFF;
const HISTORY: usize = 4096;

/// The packed bytes without a header; nothing where the server keeps the value as it is.
pub fn pack(raw: &[u8]) -> Option<Vec<u8>> {
    (raw.len() >= INPUT_MIN).then_some(())?;
    let most = raw.len() / 100 * RATE_MAX + raw.len() % 100 * RATE_MAX / 100;
    let mut history = History::new(raw);
    let mut out = Output::default();
    let (mut at, mut has_match) = (0, false);
    while at < raw.len() {
        let given_up = !has_match && out.bytes.len() >= FIRST_SUCCESS_BY;
        if out.bytes.len() >= most || given_up {
            return None;
        }
        let taken = match history.find(at) {
            Some((length, offset)) => {
                out.push_match(length, offset);
                has_match = true;
                length
            }
            None => {
                out.push_literal(*raw.get(at)?);
                1
            }
        };
        (at..at + taken).for_each(|at| history.add(at));
        at += taken;
    }
    (out.bytes.len() < most).then_some(out.bytes)
}

/// Places by what they begin with, the newest first.
struct History<'a> {
    raw: &'a [u8],
    mask: usize,
    /// The newest place of each hash, counted from 1; 0 is none.
    newest: Vec<u32>,
    /// The place before, of each of the last places.
    before: Vec<u32>,
}

impl<'a> History<'a> {
    fn new(raw: &'a [u8]) -> Self {
        let lists = match raw.len() {
            0..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => 8192,
        };
        History {
            raw,
            mask: lists - 1,
            newest: vec![0; lists],
            before: vec![0; HISTORY],
        }
    }

    fn hash(&self, at: usize) -> usize {
        let rest = self.raw.get(at..).unwrap_or_default();
        let hash = match rest {
            [a, b, c, d, ..] => {
                usize::from(*a) << 6 ^ usize::from(*b) << 4 ^ usize::from(*c) << 2 ^ usize::from(*d)
            }
            _ => rest.first().copied().map_or(0, usize::from),
        };
        hash & self.mask
    }

    fn add(&mut self, at: usize) {
        let hash = self.hash(at);
        let place = u32::try_from(at + 1).unwrap_or(0);
        if let (Some(newest), Some(before)) =
            (self.newest.get_mut(hash), self.before.get_mut(at % HISTORY))
        {
            *before = std::mem::replace(newest, place);
        }
    }

    /// Length and offset of the best match.
    fn find(&self, at: usize) -> Option<(usize, usize)> {
        let here = self.raw.get(at..)?;
        let (mut best, mut offset, mut good) = (0, 0, MATCH_GOOD);
        let mut place = *self.newest.get(self.hash(at))?;
        while let Some(old) = (place as usize).checked_sub(1) {
            let back = at - old;
            if back >= OFFSET_END {
                break;
            }
            let same = here.iter().zip(self.raw.get(old..)?).take(MATCH_MAX);
            let length = same.take_while(|(new, old)| new == old).count();
            if length > best {
                (best, offset) = (length, back);
            }
            place = *self.before.get(old % HISTORY)?;
            if best >= good {
                break;
            }
            good -= good / 10;
        }
        (best >= MATCH_MIN).then_some((best, offset))
    }
}

/// Packed bytes: each control byte says of the next eight whether they are matches.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    control_at: usize,
    bit: u8,
}

impl Output {
    fn flag(&mut self, is_match: bool) {
        if self.bit == 0 {
            self.control_at = self.bytes.len();
            self.bytes.push(0);
            self.bit = 1;
        }
        if let Some(control) = self.bytes.get_mut(self.control_at).filter(|_| is_match) {
            *control |= self.bit;
        }
        // After the eighth bit none is left, and the next flag begins a control byte.
        self.bit <<= 1;
    }

    fn push_literal(&mut self, byte: u8) {
        self.flag(false);
        self.bytes.push(byte);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "twelve bits of offset, and a length of 3 to 273"
    )]
    fn push_match(&mut self, length: usize, offset: usize) {
        self.flag(true);
        // Twelve bits of offset, and a length of 3 to 273.
        let high = (offset >> 4 & 0xF0) as u8;
        let low = (offset & 0xFF) as u8;
        if length < MATCH_LONG {
            self.bytes.extend([high | (length - MATCH_MIN) as u8, low]);
        } else {
            self.bytes
                .extend([high | 0x0F, low, (length - MATCH_LONG) as u8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pglz::decompress;

    #[test]
    fn what_was_packed_comes_out_again() {
        let texts = [
            "a value that repeats itself, ".repeat(40),
            (0..3000)
                .map(|n| format!("{{\"key{}\": {}}}", n % 7, n * 31))
                .collect(),
            "x".repeat(100_000),
        ];
        for text in texts {
            let packed = pack(text.as_bytes()).expect("it packs");
            assert!(packed.len() < text.len() * 3 / 4);
            assert_eq!(
                decompress(&packed, text.len()).as_deref(),
                Ok(text.as_bytes())
            );
        }
    }

    #[test]
    fn what_does_not_shrink_is_left_alone() {
        assert_eq!(pack(b"short"), None);
        let mut number = 1u64;
        let noise: Vec<u8> = (0..5000)
            .map(|_| {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (number >> 56) as u8
            })
            .collect();
        assert_eq!(pack(&noise), None);
    }
}
