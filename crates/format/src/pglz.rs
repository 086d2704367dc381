//! PostgreSQL's own compression: groups of eight items behind a control byte, lowest bit first.
//!
//! ```text
//! bit 0   one byte, as it is
//! bit 1   ooooLLLL oooooooo [EEEEEEEE]   copy from o back (12 bits, 1..4095), L + 3 bytes;
//!                                        L = 15 has a third byte that is added: 18..273
//! ```
//!
//! Truth: `src/common/pg_lzcompress.c`.

use crate::datum::DecompressError;

pub(crate) const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 273;
/// Lengths from here on have a third byte.
pub(crate) const MATCH_LONG: usize = 18;
const OFFSET_MAX: usize = 4095;

/// Unpacks to exactly `raw_size` bytes, using up all of `data`; holds no more than that.
pub fn decompress(data: &[u8], raw_size: usize) -> Result<Vec<u8>, DecompressError> {
    // A match of three bytes gives the most; the vector grows past this guess if it must.
    let mut raw =
        Vec::with_capacity(raw_size.min(data.len().saturating_mul(MATCH_MAX / MATCH_MIN + 1)));
    let mut input = data;
    while raw.len() < raw_size
        && let Some((&control, rest)) = input.split_first()
    {
        input = rest;
        for bit in 0..8 {
            if input.is_empty() || raw.len() >= raw_size {
                break;
            }
            if control >> bit & 1 == 1 {
                input = copy(&mut raw, input, raw_size)?;
            } else if let Some((&byte, rest)) = input.split_first() {
                raw.push(byte);
                input = rest;
            }
        }
    }
    if raw.len() == raw_size && input.is_empty() {
        Ok(raw)
    } else {
        Err(DecompressError::WrongLength)
    }
}

/// Carries out the match at the head of `input`, cut off at `raw_size`; what is left of `input`.
fn copy<'a>(
    raw: &mut Vec<u8>,
    input: &'a [u8],
    raw_size: usize,
) -> Result<&'a [u8], DecompressError> {
    let [first, second, rest @ ..] = input else {
        return Err(DecompressError::Corrupt);
    };
    let mut rest = rest;
    let offset = usize::from(first & 0xF0) << 4 | usize::from(*second);
    let mut length = usize::from(first & 0x0F) + MATCH_MIN;
    if length == MATCH_LONG {
        let (&more, after) = rest.split_first().ok_or(DecompressError::Corrupt)?;
        length += usize::from(more);
        rest = after;
    }
    let start = raw
        .len()
        .checked_sub(offset)
        .filter(|_| offset > 0)
        .ok_or(DecompressError::Corrupt)?;
    let mut left = length.min(raw_size.saturating_sub(raw.len()));
    // The source may reach into what is being written: whole repetitions are taken at a time.
    while left > 0 {
        let take = left.min(raw.len() - start);
        raw.extend_from_within(start..start + take);
        left -= take;
    }
    Ok(rest)
}

/// Packs without trying hard, for tests and builders; may come out longer than `raw`.
pub fn compress(raw: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(raw.len() / 2 + 16);
    let mut seen = vec![usize::MAX; 1 << 12];
    let (mut at, mut control_at, mut bit) = (0, 0, 8);
    while at < raw.len() {
        if bit == 8 {
            control_at = packed.len();
            packed.push(0);
            bit = 0;
        }
        let length = match find(raw, at, &mut seen) {
            Some((offset, length)) => {
                if let Some(control) = packed.get_mut(control_at) {
                    *control |= 1 << bit;
                }
                push_match(&mut packed, offset, length);
                length
            }
            None => {
                packed.extend(raw.get(at));
                1
            }
        };
        at += length;
        bit += 1;
    }
    packed
}

/// Offset and length of an earlier copy of what begins at `at`, remembering this place.
fn find(raw: &[u8], at: usize, seen: &mut [usize]) -> Option<(usize, usize)> {
    let here = raw.get(at..)?;
    let &[a, b, c, ..] = here else { return None };
    let key = (usize::from(a) << 4 ^ usize::from(b) << 2 ^ usize::from(c)) & 0xFFF;
    let before = std::mem::replace(seen.get_mut(key)?, at);
    let offset = at
        .checked_sub(before)
        .filter(|offset| (1..=OFFSET_MAX).contains(offset))?;
    let same = raw
        .get(before..)?
        .iter()
        .zip(here)
        .take(MATCH_MAX)
        .take_while(|(old, new)| old == new);
    let length = same.count();
    (length >= MATCH_MIN).then_some((offset, length))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "`find` keeps offsets to twelve bits and lengths to 273"
)]
fn push_match(packed: &mut Vec<u8>, offset: usize, length: usize) {
    // `find` keeps offsets to twelve bits and lengths to 273.
    let high = (offset >> 4 & 0xF0) as u8;
    let low = (offset & 0xFF) as u8;
    if length < MATCH_LONG {
        packed.extend([high | (length - MATCH_MIN) as u8, low]);
    } else {
        packed.extend([high | 0x0F, low, (length - MATCH_LONG) as u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_may_reach_into_its_own_output() {
        // "a", then nine bytes from one back.
        assert_eq!(decompress(&[0b10, b'a', 6, 1], 10).unwrap(), b"aaaaaaaaaa");
    }

    #[test]
    fn lies_are_refused() {
        assert_eq!(
            decompress(&[0b10, b'a', 6, 2], 10),
            Err(DecompressError::Corrupt)
        );
        assert_eq!(
            decompress(&[0b10, b'a', 6, 0], 10),
            Err(DecompressError::Corrupt)
        );
        assert_eq!(
            decompress(&[0b10, b'a', 6], 10),
            Err(DecompressError::Corrupt)
        );
        assert_eq!(
            decompress(&[0b10, b'a', 6, 1], 11),
            Err(DecompressError::WrongLength)
        );
        assert_eq!(
            decompress(&[0, b'a', b'b'], 1),
            Err(DecompressError::WrongLength)
        );
        assert_eq!(
            decompress(&[], usize::MAX),
            Err(DecompressError::WrongLength)
        );
    }

    #[test]
    fn long_runs_become_small() {
        let raw = vec![b'x'; 100_000];
        let packed = compress(&raw);
        assert!(packed.len() < 1300);
        assert_eq!(decompress(&packed, raw.len()).unwrap(), raw);
    }
}
