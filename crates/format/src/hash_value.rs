//! The hash code of a value, as the hash operator classes that PostgreSQL brings along compute it.
//!
//! The codes do not depend on the major: `pg_upgrade` keeps hash indexes as they are.
//!
//! Truth: `src/common/hashfn.c` (Bob Jenkins' lookup3), `src/backend/access/hash/hashfunc.c`, and
//! the functions that `pg_amproc` names, in `src/backend/utils/adt/`.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::types::Oid;

/// How values of one operator class are hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hasher {
    /// All bytes, as they stand.
    Bytes,
    /// Bytes without the blanks at the end.
    Padded,
    /// Bytes up to the first zero.
    Name,
    /// A signed number of 1, 2 or 4 bytes, or an OID.
    Word,
    /// A signed number of 8 bytes.
    DoubleWord,
    /// `float4`.
    Float4,
    /// `float8`.
    Float8,
    /// `numeric`.
    Numeric,
    /// `interval`.
    Interval,
    /// `timetz`.
    TimeTz,
    /// `inet` and `cidr`.
    Network,
}

/// How the operator class with this input type hashes; `enum_ops` has the input type `anyenum`.
/// Nothing for arrays, ranges, records, jsonb and access lists.
pub fn hasher_of(input_type: Oid) -> Option<Hasher> {
    Some(match input_type {
        // text, bytea, uuid, macaddr, macaddr8, tid
        25 | 17 | 2950 | 829 | 774 | 27 => Hasher::Bytes,
        1042 => Hasher::Padded,
        19 => Hasher::Name,
        // bool, "char", int2, int4, oid, xid, cid, date, anyenum
        16 | 18 | 21 | 23 | 26 | 28 | 29 | 1082 | 3500 => Hasher::Word,
        // int8, time, timestamp, timestamptz, pg_lsn, xid8
        20 | 1083 | 1114 | 1184 | 3220 | 5069 => Hasher::DoubleWord,
        700 => Hasher::Float4,
        701 => Hasher::Float8,
        1700 => Hasher::Numeric,
        1186 => Hasher::Interval,
        1266 => Hasher::TimeTz,
        869 => Hasher::Network,
        _ => return None,
    })
}

/// The code of a value: its bytes, for types of varying length without their header. Nothing where
/// the bytes are too few, and for what minor releases or machines hash differently (NaN, `"char"`
/// beyond ASCII).
pub fn hash_value(hasher: Hasher, value: &[u8]) -> Option<u32> {
    match hasher {
        Hasher::Bytes => Some(hash_bytes(value)),
        Hasher::Padded => {
            let end = value.iter().rposition(|byte| *byte != b' ');
            value.get(..end.map_or(0, |last| last + 1)).map(hash_bytes)
        }
        Hasher::Name => {
            let end = value.iter().position(|byte| *byte == 0);
            value.get(..end.unwrap_or(value.len())).map(hash_bytes)
        }
        Hasher::Word => word(value).map(hash_word),
        Hasher::DoubleWord => u64_at(value, 0).map(|number| double_word(number.cast_signed())),
        Hasher::Float4 => float(f64::from(f32::from_bits(u32_at(value, 0)?))),
        Hasher::Float8 => float(f64::from_bits(u64_at(value, 0)?)),
        Hasher::Numeric => numeric(value),
        Hasher::Interval => interval(value),
        Hasher::TimeTz => {
            let time = double_word(u64_at(value, 0)?.cast_signed());
            Some(time ^ hash_word(u32_at(value, 8)?))
        }
        Hasher::Network => network(value),
    }
}

fn word(value: &[u8]) -> Option<u32> {
    match *value {
        // The sign of a `char` is the machine's affair.
        [byte] => (byte < 0x80).then_some(u32::from(byte)),
        [low, high] => {
            let number = i16::from_le_bytes([low, high]);
            Some(i32::from(number).cast_unsigned())
        }
        _ => u32_at(value, 0),
    }
}

/// The same as for an equal number of 4 bytes.
fn double_word(number: i64) -> u32 {
    let halves = number.cast_unsigned();
    let low = (halves & 0xFFFF_FFFF) as u32;
    let high = (halves >> 32) as u32;
    hash_word(low ^ if number >= 0 { high } else { !high })
}

fn float(number: f64) -> Option<u32> {
    if number == 0.0 {
        return Some(0);
    }
    (!number.is_nan()).then(|| hash_bytes(&number.to_le_bytes()))
}

/// Only the digits and where they begin count, not how many zeros stand around them.
fn numeric(value: &[u8]) -> Option<u32> {
    const SPECIAL: u16 = 0xC000;
    const SHORT: u16 = 0x8000;
    let header = u16_at(value, 0)?;
    if header & SPECIAL == SPECIAL {
        return Some(0);
    }
    let (weight, digits) = if header & SPECIAL == SHORT {
        // Seven bits, the first one the sign.
        let weight = i32::from((header & 0x7F) as u8) - if header & 0x40 == 0 { 0 } else { 0x80 };
        (weight, value.get(2..)?)
    } else {
        let weight = i32::from(u16_at(value, 2)?.cast_signed());
        (weight, value.get(4..)?)
    };
    let (digits, _) = digits.as_chunks::<2>();
    let Some(first) = digits.iter().position(|digit| *digit != [0, 0]) else {
        return Some(u32::MAX);
    };
    let last = digits.iter().rposition(|digit| *digit != [0, 0])?;
    let digits = digits.get(first..=last)?.as_flattened();
    let weight = weight.checked_sub(i32::try_from(first).ok()?)?;
    Some(hash_bytes(digits) ^ weight.cast_unsigned())
}

/// A month is 30 days and a day 24 hours.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn interval(value: &[u8]) -> Option<u32> {
    const DAY_MICROS: i128 = 86_400_000_000;
    let time = i128::from(u64_at(value, 0)?.cast_signed());
    let days = i128::from(u32_at(value, 8)?.cast_signed());
    let months = i128::from(u32_at(value, 12)?.cast_signed());
    let span = time + (days + months * 30) * DAY_MICROS;
    let low = (span.cast_unsigned() & u128::from(u64::MAX)) as u64;
    Some(double_word(low.cast_signed()))
}

/// Family, bits of the mask, and the 4 or 16 bytes of the address.
fn network(value: &[u8]) -> Option<u32> {
    let address = match *value.first()? {
        2 => 4,
        3 => 16,
        _ => return None,
    };
    value.get(..2 + address).map(hash_bytes)
}

/// The three words that lookup3 turns over.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(len: u32) -> Self {
        let start = 0x9e37_79b9_u32.wrapping_add(len).wrapping_add(3_923_095);
        State {
            a: start,
            b: start,
            c: start,
        }
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        for (one, two, three) in [(4, 6, 8), (16, 19, 4)] {
            *a = a.wrapping_sub(*c) ^ c.rotate_left(one);
            *c = c.wrapping_add(*b);
            *b = b.wrapping_sub(*a) ^ a.rotate_left(two);
            *a = a.wrapping_add(*c);
            *c = c.wrapping_sub(*b) ^ b.rotate_left(three);
            *b = b.wrapping_add(*a);
        }
    }

    fn finish(self) -> u32 {
        let State {
            mut a,
            mut b,
            mut c,
        } = self;
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        (c ^ b).wrapping_sub(b.rotate_left(24))
    }
}

/// `hash_bytes`.
pub fn hash_bytes(bytes: &[u8]) -> u32 {
    // A value is shorter than 1 GB.
    let mut state = State::new(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let (blocks, rest) = bytes.as_chunks::<12>();
    for block in blocks {
        state.a = state.a.wrapping_add(u32_at(block, 0).unwrap_or(0));
        state.b = state.b.wrapping_add(u32_at(block, 4).unwrap_or(0));
        state.c = state.c.wrapping_add(u32_at(block, 8).unwrap_or(0));
        state.mix();
    }
    let mut last = [0; 12];
    // The lowest byte of the last word is left to the length.
    let places = (0..8).chain(9..12);
    for (place, byte) in places.zip(rest) {
        if let Some(to) = last.get_mut(place) {
            *to = *byte;
        }
    }
    state.a = state.a.wrapping_add(u32_at(&last, 0).unwrap_or(0));
    state.b = state.b.wrapping_add(u32_at(&last, 4).unwrap_or(0));
    state.c = state.c.wrapping_add(u32_at(&last, 8).unwrap_or(0));
    state.finish()
}

/// `hash_bytes_uint32`.
pub fn hash_word(word: u32) -> u32 {
    let mut state = State::new(4);
    state.a = state.a.wrapping_add(word);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(hasher: Hasher, value: &[u8]) -> u32 {
        hash_value(hasher, value).expect("a value")
    }

    /// What `hashtext` and its like say on a server.
    #[test]
    fn codes_are_those_of_the_server() {
        let texts = [
            ("", 2_817_148_525),
            ("hello", 2_424_674_345),
            ("twelve bytes", 652_846_557),
            ("hello world, this is longer than twelve", 3_049_462_434),
        ];
        for (text, expected) in texts {
            assert_eq!(code(Hasher::Bytes, text.as_bytes()), expected, "{text}");
        }
        assert_eq!(code(Hasher::Padded, b"abc  "), 3_509_578_647);
        assert_eq!(code(Hasher::Name, b"pg_class\0\0\0"), 4_027_166_188);
        assert_eq!(code(Hasher::Word, b"a"), 463_612_535);
        assert_eq!(code(Hasher::Word, &(-7i16).to_le_bytes()), 4_212_762_879);
        assert_eq!(code(Hasher::Word, &1i32.to_le_bytes()), 2_389_907_270);
        assert_eq!(code(Hasher::Word, &(-5i32).to_le_bytes()), 1_412_886_042);
        assert_eq!(
            code(Hasher::DoubleWord, &(-5i64).to_le_bytes()),
            1_412_886_042
        );
        let large = 1_234_567_890_123_456_789i64;
        assert_eq!(code(Hasher::DoubleWord, &large.to_le_bytes()), 804_253_767);
        assert_eq!(code(Hasher::Float8, &1.5f64.to_le_bytes()), 630_860_146);
        assert_eq!(code(Hasher::Float4, &1.5f32.to_le_bytes()), 630_860_146);
        assert_eq!(code(Hasher::Float8, &(-0.0f64).to_le_bytes()), 0);
        assert_eq!(hash_value(Hasher::Float4, &f32::NAN.to_le_bytes()), None);
        assert_eq!(code(Hasher::Network, &[2, 8, 10, 0, 0, 1]), 1_043_865_489);
    }

    #[test]
    fn times_are_those_of_the_server() {
        let mut value = (11_045_000_000i64).to_le_bytes().to_vec();
        value.extend([2i32.to_le_bytes(), 1i32.to_le_bytes()].concat());
        assert_eq!(code(Hasher::Interval, &value), 2_093_561_372);
        let mut value = (12 * 3_600_000_000i64).to_le_bytes().to_vec();
        value.extend((-7200i32).to_le_bytes());
        assert_eq!(code(Hasher::TimeTz, &value), 3_936_216_884);
    }

    #[test]
    fn numbers_are_those_of_the_server() {
        let number = |header: u16, digits: &[u16]| {
            let words = std::iter::once(&header).chain(digits);
            let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            code(Hasher::Numeric, &bytes)
        };
        assert_eq!(number(0x8000 | 2 << 7, &[123, 4500]), 258_302_971);
        assert_eq!(number(0xA002, &[12]), 3_670_834_290);
        assert_eq!(number(0x8000 | 2 << 7, &[]), u32::MAX);
        assert_eq!(number(0x8000 | 5 << 7 | 0x7E, &[1000]), 1_951_971_036);
        let long = [2, 12, 3456, 7890, 1, 2300];
        assert_eq!(number(6, &long), 1_771_192_809);
        assert_eq!(number(0xC000, &[]), 0, "not a number");
    }
}
