//! The server's 32-bit hash of a value, as hash indexes and bloom summaries use it.
//!
//! The bytes are all of a fixed-size value, or the payload of a varlena, unpacked. Truth: Bob
//! Jenkins' lookup3 in `src/common/hashfn.c`, `src/backend/access/hash/hashfunc.c`, and the hash
//! functions beside each type in `src/backend/utils/adt/`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::types::Oid;

/// What every hash begins with, before the length.
const BASIS: u32 = 0x9E37_79B9_u32.wrapping_add(3_923_095);
/// Bytes that are mixed at once.
const BLOCK: usize = 12;
const USECS_PER_DAY: i128 = 86_400_000_000;

/// The three words of a hash in the making.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn of_length(bytes: usize) -> Self {
        let start = BASIS.wrapping_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        State {
            a: start,
            b: start,
            c: start,
        }
    }

    fn add(&mut self, a: u32, b: u32, c: u32) {
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        stir(a, c, b, 4);
        stir(b, a, c, 6);
        stir(c, b, a, 8);
        stir(a, c, b, 16);
        stir(b, a, c, 19);
        stir(c, b, a, 4);
    }

    fn finish(&mut self) {
        let State { a, b, c } = self;
        settle(c, b, 14);
        settle(a, c, 11);
        settle(b, a, 25);
        settle(c, b, 16);
        settle(a, c, 4);
        settle(b, a, 14);
        settle(c, b, 24);
    }
}

fn stir(x: &mut u32, y: &mut u32, z: &u32, turn: u32) {
    *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
    *y = y.wrapping_add(*z);
}

fn settle(x: &mut u32, y: &u32, turn: u32) {
    *x = (*x ^ *y).wrapping_sub(y.rotate_left(turn));
}

/// `hash_bytes`.
pub fn hash_bytes(bytes: &[u8]) -> u32 {
    let mut state = State::of_length(bytes.len());
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let word = |bytes: &[u8], at| u32_at(bytes, at).unwrap_or_default();
    for block in blocks {
        state.add(word(block, 0), word(block, 4), word(block, 8));
        state.mix();
    }
    // The lowest byte of the third word is left to the length.
    let mut last = [0; BLOCK + 1];
    for (index, byte) in rest.iter().enumerate() {
        let at = if index < 8 { index } else { index + 1 };
        if let Some(slot) = last.get_mut(at) {
            *slot = *byte;
        }
    }
    state.add(word(&last, 0), word(&last, 4), word(&last, 8));
    state.finish();
    state.c
}

/// `hash_bytes_uint32`.
pub fn hash_u32(value: u32) -> u32 {
    let mut state = State::of_length(4);
    state.add(value, 0, 0);
    state.finish();
    state.c
}

/// `hash_bytes_uint32_extended` with a seed that is not 0.
pub fn hash_u32_seeded(value: u32, seed: u64) -> u64 {
    let mut state = State::of_length(4);
    let high = u32::try_from(seed >> 32).unwrap_or_default();
    let low = u32::try_from(seed & u64::from(u32::MAX)).unwrap_or_default();
    state.add(high, low, 0);
    state.mix();
    state.add(value, 0, 0);
    state.finish();
    u64::from(state.b) << 32 | u64::from(state.c)
}

/// How the values of a type are hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueHash {
    /// All bytes.
    Bytes,
    /// So many bytes.
    Fixed(usize),
    /// Bytes without blanks at the end.
    Blanked,
    /// Bytes up to the first zero.
    Name,
    /// A 16-bit number.
    I16,
    /// A 32-bit number.
    I32,
    /// A 64-bit number.
    I64,
    /// A 32-bit floating-point number.
    F32,
    /// A 64-bit floating-point number.
    F64,
    /// An interval.
    Interval,
    /// A time of day with its zone.
    TimeWithZone,
    /// A decimal number.
    Numeric,
    /// A network address.
    Network,
}

impl ValueHash {
    /// By the input type of the operator class. Text is hashed by its bytes only under a
    /// deterministic collation; `"char"` is left out, since its signedness is the machine's.
    pub fn of_type(input_type: Oid) -> Option<Self> {
        Some(match input_type {
            17 | 25 => ValueHash::Bytes,
            19 => ValueHash::Name,
            20 | 1083 | 1114 | 1184 | 3220 => ValueHash::I64,
            21 => ValueHash::I16,
            23 | 26 | 1082 => ValueHash::I32,
            27 | 829 => ValueHash::Fixed(6),
            774 => ValueHash::Fixed(8),
            2950 => ValueHash::Fixed(16),
            700 => ValueHash::F32,
            701 => ValueHash::F64,
            869 => ValueHash::Network,
            1042 => ValueHash::Blanked,
            1186 => ValueHash::Interval,
            1266 => ValueHash::TimeWithZone,
            1700 => ValueHash::Numeric,
            _ => return None,
        })
    }

    /// Nothing when the value does not decode, and for NaN, of which there are several.
    pub fn of(self, value: &[u8]) -> Option<u32> {
        Some(match self {
            ValueHash::Bytes => hash_bytes(value),
            ValueHash::Fixed(len) => hash_bytes(value.get(..len)?),
            ValueHash::Blanked => {
                let end = value
                    .iter()
                    .rposition(|byte| *byte != b' ')
                    .map_or(0, |at| at + 1);
                hash_bytes(value.get(..end)?)
            }
            ValueHash::Name => {
                let end = value
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(value.len());
                hash_bytes(value.get(..end)?)
            }
            ValueHash::I16 => {
                let number = i32::from(u16_at(value, 0)?.cast_signed());
                hash_u32(number.cast_unsigned())
            }
            ValueHash::I32 => hash_u32(u32_at(value, 0)?),
            ValueHash::I64 => hash_i64(u64_at(value, 0)?.cast_signed()),
            ValueHash::F32 => float(f64::from(f32::from_bits(u32_at(value, 0)?)))?,
            ValueHash::F64 => float(f64::from_bits(u64_at(value, 0)?))?,
            ValueHash::Interval => interval(value)?,
            ValueHash::TimeWithZone => {
                hash_i64(u64_at(value, 0)?.cast_signed()) ^ hash_u32(u32_at(value, 8)?)
            }
            ValueHash::Numeric => numeric(value)?,
            ValueHash::Network => {
                let address = match *value.first()? {
                    2 => 4,
                    3 => 16,
                    _ => return None,
                };
                hash_bytes(value.get(..2 + address)?)
            }
        })
    }
}

/// A number has the same hash as 32-bit and as 64-bit integer.
fn hash_i64(number: i64) -> u32 {
    let bytes = number.to_le_bytes();
    let low = u32_at(&bytes, 0).unwrap_or_default();
    let high = u32_at(&bytes, 4).unwrap_or_default();
    hash_u32(low ^ if number >= 0 { high } else { !high })
}

fn float(number: f64) -> Option<u32> {
    if number == 0.0 {
        return Some(0);
    }
    (!number.is_nan()).then(|| hash_bytes(&number.to_le_bytes()))
}

/// A month counts as 30 days, a day as 24 hours; only the lower 64 bits count.
fn interval(value: &[u8]) -> Option<u32> {
    let time = i128::from(u64_at(value, 0)?.cast_signed());
    let days = i128::from(u32_at(value, 8)?.cast_signed());
    let months = i128::from(u32_at(value, 12)?.cast_signed());
    let span = time + (months * 30 + days) * USECS_PER_DAY;
    let low = u64_at(&span.to_le_bytes(), 0)?;
    Some(hash_i64(low.cast_signed()))
}

/// Digits without zeros at both ends, and the weight of the first; sign and scale do not count.
fn numeric(value: &[u8]) -> Option<u32> {
    const SPECIAL: u16 = 0xC000;
    const SHORT: u16 = 0x8000;
    let header = u16_at(value, 0)?;
    if header & SPECIAL == SPECIAL {
        return Some(0);
    }
    let (weight, digits) = if header & SHORT != 0 {
        let low = i32::from(header & 0x3F);
        let weight = if header & 0x40 != 0 { low - 64 } else { low };
        (weight, value.get(2..)?)
    } else {
        (i32::from(u16_at(value, 2)?.cast_signed()), value.get(4..)?)
    };
    let (digits, _) = digits.as_chunks::<2>();
    let is_digit = |digit: &[u8; 2]| *digit != [0; 2];
    let Some(first) = digits.iter().position(is_digit) else {
        return Some(u32::MAX);
    };
    let last = digits.iter().rposition(is_digit)?;
    let weight = weight.wrapping_sub(i32::try_from(first).ok()?);
    let digits = digits.get(first..=last)?.as_flattened();
    Some(hash_bytes(digits) ^ weight.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_sizes_agree() {
        let hash = |kind: ValueHash, bytes: &[u8]| kind.of(bytes).expect("a value");
        for number in [0i16, 1, -1, 300, -300] {
            let small = hash(ValueHash::I16, &number.to_le_bytes());
            assert_eq!(
                small,
                hash(ValueHash::I32, &i32::from(number).to_le_bytes())
            );
            assert_eq!(
                small,
                hash(ValueHash::I64, &i64::from(number).to_le_bytes())
            );
        }
    }

    #[test]
    fn a_numeric_has_one_hash_whatever_its_scale() {
        let one = [0x00, 0x80, 1, 0];
        let one_point_zero = [0x80, 0x80, 1, 0, 0, 0];
        assert_eq!(
            ValueHash::Numeric.of(&one),
            ValueHash::Numeric.of(&one_point_zero)
        );
        assert_eq!(ValueHash::Numeric.of(&[0, 0x80]), Some(u32::MAX));
    }

    #[test]
    fn a_float_of_either_size_has_one_hash() {
        let single = ValueHash::F32.of(&1.5f32.to_le_bytes());
        assert_eq!(single, ValueHash::F64.of(&1.5f64.to_le_bytes()));
        assert_eq!(ValueHash::F64.of(&(-0.0f64).to_le_bytes()), Some(0));
    }
}
