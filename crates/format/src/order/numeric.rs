//! `numeric`: by value, whatever its scale; `-Infinity`, numbers, `Infinity`, `NaN`.
//!
//! Truth: `numeric.c`.

use std::cmp::Ordering;

use crate::bytes::u16_at;

#[derive(Clone, Copy)]
struct Digits<'a> {
    /// Place of the first digit: its value counts 10000 to the power of this.
    weight: i16,
    digits: &'a [[u8; 2]],
}

enum Number<'a> {
    NegativeInfinity,
    Negative(Digits<'a>),
    Zero,
    Positive(Digits<'a>),
    Infinity,
    NaN,
}

impl Number<'_> {
    fn rank(&self) -> u8 {
        match self {
            Number::NegativeInfinity => 0,
            Number::Negative(_) => 1,
            Number::Zero => 2,
            Number::Positive(_) => 3,
            Number::Infinity => 4,
            Number::NaN => 5,
        }
    }
}

/// Compares two payloads.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (a, b) = (parse(a)?, parse(b)?);
    Some(match (&a, &b) {
        (Number::Positive(a), Number::Positive(b)) => compare_digits(*a, *b),
        (Number::Negative(a), Number::Negative(b)) => compare_digits(*b, *a),
        _ => a.rank().cmp(&b.rank()),
    })
}

fn parse(value: &[u8]) -> Option<Number<'_>> {
    let word = u16_at(value, 0)?;
    let (weight, is_negative, start) = match word & 0xC000 {
        0xC000 => {
            return match word & 0xF000 {
                0xC000 => Some(Number::NaN),
                0xD000 => Some(Number::Infinity),
                0xF000 => Some(Number::NegativeInfinity),
                _ => None,
            };
        }
        // Seven bits, the highest of them the sign.
        0x8000 => (
            (word & 0x3F).cast_signed() - (word & 0x40).cast_signed(),
            word & 0x2000 != 0,
            2,
        ),
        sign => (u16_at(value, 2)?.cast_signed(), sign == 0x4000, 4),
    };
    let (digits, rest) = value.get(start..)?.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digits = Digits { weight, digits };
    Some(match is_negative {
        _ if digits.digits.is_empty() => Number::Zero,
        true => Number::Negative(digits),
        false => Number::Positive(digits),
    })
}

/// Which of two sizes is the greater one. Servers store no zeros before and behind, but take them.
fn compare_digits(a: Digits<'_>, b: Digits<'_>) -> Ordering {
    let (a, b) = (trimmed(a), trimmed(b));
    let weights = match (a.digits.is_empty(), b.digits.is_empty()) {
        (false, false) => a.weight.cmp(&b.weight),
        (is_a_zero, is_b_zero) => is_b_zero.cmp(&is_a_zero),
    };
    let value = |digit: &[u8; 2]| u16::from_le_bytes(*digit);
    weights.then_with(|| a.digits.iter().map(value).cmp(b.digits.iter().map(value)))
}

fn trimmed(number: Digits<'_>) -> Digits<'_> {
    let Digits {
        mut weight,
        mut digits,
    } = number;
    while let [[0, 0], rest @ ..] = digits {
        digits = rest;
        weight = weight.saturating_sub(1);
    }
    while let [rest @ .., [0, 0]] = digits {
        digits = rest;
    }
    Digits { weight, digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long header.
    fn long(sign: u16, weight: i16, digits: &[u16]) -> Vec<u8> {
        let mut bytes = sign.to_le_bytes().to_vec();
        bytes.extend(weight.to_le_bytes());
        bytes.extend(digits.iter().flat_map(|digit| digit.to_le_bytes()));
        bytes
    }

    #[test]
    fn short_and_long_headers_meet() {
        let ten = [0x00, 0x80, 10, 0];
        assert_eq!(compare(&ten, &long(0, 0, &[10])), Some(Ordering::Equal));
        assert_eq!(compare(&ten, &long(0, 0, &[10, 1])), Some(Ordering::Less));
        assert_eq!(compare(&ten, &long(0, 1, &[0, 10])), Some(Ordering::Equal));
        assert_eq!(
            compare(&ten, &long(0x4000, 9, &[1])),
            Some(Ordering::Greater)
        );
        let small = [0x7F, 0x80, 1, 0];
        assert_eq!(compare(&small, &long(0, -1, &[1])), Some(Ordering::Equal));
    }

    #[test]
    fn half_a_digit_does_not_decode() {
        assert_eq!(compare(&[0, 0x80, 1], &[0, 0x80]), None);
        assert_eq!(compare(&[0], &[0, 0x80]), None);
    }
}
