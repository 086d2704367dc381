//! Values of fixed size.
//!
//! Truth: `nbtcompare.c`, `float.c`, `timestamp.c`, `date.c`, `itemptr.c`, `mac.c`, `mac8.c`,
//! `uuid.c`.

use std::cmp::Ordering;

use super::Comparison;

/// One or two words of a value of fixed size that compare, as unsigned numbers one after the other,
/// as the values do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// Offset in the value.
    pub at: usize,
    width: Width,
    flip: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    One,
    Two,
    Four,
    Eight,
    /// Eight bytes, the first one counts most.
    EightReversed,
}

impl Word {
    /// Of an unsigned number of so many bytes.
    fn unsigned(bytes: u32) -> Self {
        let width = match bytes {
            1 => Width::One,
            2 => Width::Two,
            4 => Width::Four,
            _ => Width::Eight,
        };
        let (at, flip) = (0, 0);
        Word { at, width, flip }
    }

    /// Of a signed one: without its sign bit the least number is zero.
    fn signed(bytes: u32) -> Self {
        Word {
            flip: 1 << (bytes * 8 - 1),
            ..Word::unsigned(bytes)
        }
    }

    /// The words of a comparison; none where values do not compare as numbers do.
    pub(super) fn all_of(comparison: &Comparison) -> Option<Vec<Word>> {
        Some(match comparison {
            Comparison::U8 => vec![Word::unsigned(1)],
            Comparison::I16 => vec![Word::signed(2)],
            Comparison::I32 => vec![Word::signed(4)],
            Comparison::I64 => vec![Word::signed(8)],
            Comparison::U32 => vec![Word::unsigned(4)],
            Comparison::U64 => vec![Word::unsigned(8)],
            Comparison::Uuid => [0, 8]
                .map(|at| Word {
                    at,
                    width: Width::EightReversed,
                    flip: 0,
                })
                .to_vec(),
            _ => return None,
        })
    }

    /// The same in a value that stands at this offset, and in reversed order if asked for.
    #[must_use]
    pub fn placed(self, at: usize, descending: bool) -> Self {
        Word {
            at: self.at + at,
            flip: if descending { !self.flip } else { self.flip },
            ..self
        }
    }

    /// Reads it.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Option<u64> {
        let rest = bytes.get(self.at..)?;
        let word = match self.width {
            Width::One => u64::from(*rest.first()?),
            Width::Two => u64::from(u16::from_le_bytes(*rest.first_chunk()?)),
            Width::Four => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
            Width::Eight => u64::from_le_bytes(*rest.first_chunk()?),
            Width::EightReversed => u64::from_be_bytes(*rest.first_chunk()?),
        };
        Some(word ^ self.flip)
    }
}

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Both read as something ordered.
#[inline]
pub(super) fn fixed<const N: usize, T: Ord>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> Option<Ordering> {
    let (a, b) = (read(a.try_into().ok()?), read(b.try_into().ok()?));
    Some(a.cmp(&b))
}

/// NaN is equal to itself and above all numbers; the two zeros are equal.
#[inline]
pub(super) fn floats<const N: usize, T: PartialOrd>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; N]) -> T,
) -> Option<Ordering> {
    let (a, b) = (read(a.try_into().ok()?), read(b.try_into().ok()?));
    let is_nan = |number: &T| number.partial_cmp(number).is_none();
    let order = a.partial_cmp(&b);
    Some(order.unwrap_or_else(|| is_nan(&a).cmp(&is_nan(&b))))
}

/// Block in two halves, the upper one first, then the item.
pub(super) fn tid([a, b, c, d, e, f]: [u8; 6]) -> (u16, u16, u16) {
    (
        u16::from_le_bytes([a, b]),
        u16::from_le_bytes([c, d]),
        u16::from_le_bytes([e, f]),
    )
}

/// Its length in microseconds, with months of 30 days.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fields are taken out of one number"
)]
pub(super) fn interval(bytes: [u8; 16]) -> i128 {
    let all = u128::from_le_bytes(bytes);
    // 64 bits of time, 32 of days, 32 of months.
    let time = (all as u64).cast_signed();
    let days = ((all >> 64) as u32).cast_signed();
    let months = ((all >> 96) as u32).cast_signed();
    let days = i128::from(months) * DAYS_PER_MONTH + i128::from(days);
    i128::from(time) + days * MICROS_PER_DAY
}

/// The moment in UTC, then the zone in seconds west.
pub(super) fn time_with_zone(bytes: [u8; 12]) -> (i64, i32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    let time = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let zone = i32::from_le_bytes([i, j, k, l]);
    // The server's own sum wraps.
    let moment = time.wrapping_add(i64::from(zone) * MICROS_PER_SECOND);
    (moment, zone)
}

/// As the server's word for a value of one to eight bytes: sign bits above it change no order.
pub(super) fn images(a: &[u8], b: &[u8]) -> Option<Ordering> {
    (a.len() == b.len()).then(|| a.iter().rev().cmp(b.iter().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_thirty_days_and_a_day_24_hours() {
        let of = |time: i64, days: i32, months: i32| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&time.to_le_bytes());
            bytes[8..12].copy_from_slice(&days.to_le_bytes());
            bytes[12..].copy_from_slice(&months.to_le_bytes());
            interval(bytes)
        };
        assert_eq!(of(0, 0, 1), of(0, 30, 0));
        assert_eq!(of(-86_400_000_000, 1, 0), 0);
        assert!(of(i64::MAX, i32::MAX, i32::MAX) > of(i64::MAX, i32::MAX, i32::MAX - 1));
        assert!(of(i64::MIN, i32::MIN, i32::MIN) < of(0, i32::MIN, i32::MIN));
    }

    #[test]
    fn words_rise_as_their_numbers_do() {
        let word = |comparison, value: i64, descending| {
            let words = Word::all_of(&comparison).expect("a number");
            words[0].placed(0, descending).read(&value.to_le_bytes())
        };
        for (low, high) in [(-5, -4), (-1, 0), (0, 1), (7, 300)] {
            for comparison in [Comparison::I16, Comparison::I32, Comparison::I64] {
                let of = |value, descending| word(comparison.clone(), value, descending);
                assert!(of(low, false) < of(high, false), "{low} {high}");
                assert!(of(low, true) > of(high, true), "{low} {high}");
            }
        }
        assert_eq!(Word::all_of(&Comparison::Numeric), None);
        assert_eq!(Word::signed(8).read(&[0; 7]), None);
    }

    #[test]
    fn nan_is_the_largest_float() {
        let compare = |a: f64, b: f64| {
            floats(&a.to_le_bytes(), &b.to_le_bytes(), f64::from_le_bytes).unwrap()
        };
        assert_eq!(compare(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare(f64::NEG_INFINITY, f64::NAN), Ordering::Less);
        assert_eq!(compare(f64::NAN, -f64::NAN), Ordering::Equal);
        assert_eq!(compare(-0.0, 0.0), Ordering::Equal);
    }
}
