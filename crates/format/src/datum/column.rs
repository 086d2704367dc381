//! Prints the values of one column into memory of the caller's, the commonest types on a short way.
//!
//! The text is that of [`super::to_value`] for every type; a test compares the two ways.

use std::sync::Arc;

use super::date_time;
use super::float;
use super::reader::exact;
use super::style::Style;
use super::types::{TypeInfo, TypeKind};
use super::undecodable::Undecodable;
use super::{Limits, Prober, register};

/// How a value was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed<'a> {
    /// Appended to the caller's memory: digits, letters and signs that need no escape in any text
    /// format.
    Plain,
    /// The text, for the caller to escape.
    Text(&'a [u8]),
}

type Short = fn(&[u8], &mut Vec<u8>) -> Result<(), Undecodable>;

/// Values of the type, and of all that it is made of, have a text here.
pub fn is_printed(ty: &TypeInfo) -> bool {
    !ty.has_part(|part| match part.kind {
        TypeKind::Unknown => true,
        TypeKind::Base => register::printer(part).is_none(),
        _ => false,
    })
}

#[derive(Clone, Copy)]
enum Way {
    Short(Short),
    AsItIs,
    Long,
}

/// The printer of one column.
pub struct ColumnPrinter {
    ty: Arc<TypeInfo>,
    way: Way,
    prober: Prober,
}

impl ColumnPrinter {
    /// For values of this type; a domain's are those of its base.
    pub fn new(ty: &Arc<TypeInfo>, limits: Limits) -> Self {
        Self::with(ty, limits, &Style::PLAIN, Prober::new(limits))
    }

    /// The same in this style.
    pub fn styled(ty: &Arc<TypeInfo>, limits: Limits, style: &Arc<Style>) -> Self {
        let prober = Prober::styled(limits, Arc::clone(style));
        Self::with(ty, limits, style, prober)
    }

    fn with(ty: &Arc<TypeInfo>, limits: Limits, style: &Style, prober: Prober) -> Self {
        let mut ty = Arc::clone(ty);
        let mut steps = limits.depth;
        while let TypeKind::Domain(base) = &ty.kind
            && steps > 0
        {
            ty = Arc::clone(base);
            steps -= 1;
        }
        ColumnPrinter {
            way: way(&ty, style),
            ty,
            prober,
        }
    }

    /// The text is the value as it stands, unless it holds a zero.
    #[inline]
    pub fn is_text(&self) -> bool {
        matches!(self.way, Way::AsItIs)
    }

    /// The text of a value: a fixed one whole, a varlena's payload.
    #[inline]
    pub fn print<'a>(
        &'a mut self,
        value: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Printed<'a>, Undecodable> {
        match self.way {
            Way::Short(print) => print(value, out).map(|()| Printed::Plain),
            Way::AsItIs => {
                if value.contains(&0) {
                    // The long way tells where.
                    self.prober.print(&self.ty, value).map(Printed::Text)
                } else {
                    Ok(Printed::Text(value))
                }
            }
            Way::Long => self.prober.print(&self.ty, value).map(Printed::Text),
        }
    }
}

fn way(ty: &TypeInfo, style: &Style) -> Way {
    let is_styled = match ty.oid {
        700 | 701 => style.extra_float_digits <= 0,
        1082 | 1114 | 1184 => !style.has_plain_dates(),
        _ => false,
    };
    if ty.kind != TypeKind::Base || is_styled {
        return Way::Long;
    }
    match ty.oid {
        16 => Way::Short(boolean),
        20 => Way::Short(|value, out| signed(i64::from_le_bytes(exact(value)?), out)),
        21 => Way::Short(|value, out| signed(i16::from_le_bytes(exact(value)?).into(), out)),
        23 => Way::Short(|value, out| signed(i32::from_le_bytes(exact(value)?).into(), out)),
        26 | 28 | 29 => {
            Way::Short(|value, out| unsigned(u32::from_le_bytes(exact(value)?).into(), out))
        }
        700 => Way::Short(float::append_f32),
        701 => Way::Short(float::append_f64),
        1082 => Way::Short(date_time::append_date),
        1114 => Way::Short(date_time::append_timestamp),
        1184 => Way::Short(date_time::append_timestamptz),
        1700 => Way::Short(super::numeric::append),
        2950 => Way::Short(uuid),
        25 | 114 | 1042 | 1043 => Way::AsItIs,
        _ => Way::Long,
    }
}

fn boolean(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    out.push(match exact(value)? {
        [0] => b'f',
        [1] => b't',
        _ => return Err(Undecodable::damaged("a boolean is neither 0 nor 1", 0)),
    });
    Ok(())
}

fn signed(number: i64, out: &mut Vec<u8>) -> Result<(), Undecodable> {
    if number < 0 {
        out.push(b'-');
    }
    unsigned(number.unsigned_abs(), out)
}

fn unsigned(number: u64, out: &mut Vec<u8>) -> Result<(), Undecodable> {
    digits(number, 1, out);
    Ok(())
}

/// The number with at least `width` digits, zeros in front.
#[inline]
pub(super) fn digits(number: u64, width: usize, out: &mut Vec<u8>) {
    match u32::try_from(number) {
        Ok(number @ 0..EIGHT_END) if width <= 8 => few_digits(number, width, out),
        _ => many_digits(number, width, out),
    }
}

/// The first number of nine digits.
const EIGHT_END: u32 = 100_000_000;

#[inline(never)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the rest is below EIGHT_END"
)]
fn many_digits(number: u64, width: usize, out: &mut Vec<u8>) {
    let end = u64::from(EIGHT_END);
    digits(number / end, width.saturating_sub(8), out);
    // Below the end.
    few_digits((number % end) as u32, 8, out);
}

/// Eight digits are appended as one word and what is in front of the number is shifted out of it:
/// copying a handful of bytes of unknown length takes longer than making them.
#[inline]
fn few_digits(number: u32, width: usize, out: &mut Vec<u8>) {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    let word = eight_values(number);
    // At most 8, of zero.
    let zeros = (word.trailing_zeros() / 8) as usize;
    let skipped = zeros.min(8 - width.clamp(1, 8));
    let end = out.len() + 8 - skipped;
    out.extend_from_slice(&((word | ZEROS) >> (8 * skipped)).to_le_bytes());
    out.truncate(end);
}

/// The text of a number below 100,000,000, with zeros in front.
#[inline]
pub(super) fn eight_digits(number: u32) -> [u8; 8] {
    eight_values(number).to_le_bytes().map(|value| value | b'0')
}

/// The values of eight digits, the first in the lowest byte: the number is cut in halves of four
/// digits, each of them in quarters of two, each of those in bytes of one, all side by side in one
/// word.
#[inline]
fn eight_values(number: u32) -> u64 {
    let number = u64::from(number);
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    // Of numbers below 10,000 the hundreds are a product without its last 20 bits.
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let quarters = hundreds | ((halves - hundreds * 100) << 16);
    // Of numbers below 100 the tens are a product without its last 10 bits.
    let tens = ((quarters * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | ((quarters - tens * 10) << 8)
}

fn uuid(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    /// Where the two digits of each byte stand.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let bytes: [u8; 16] = exact(value)?;
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    let mut text = [b'-'; 36];
    for (byte, at) in bytes.iter().zip(PLACES) {
        if let Some(pair) = text.get_mut(at..at + 2) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out.extend_from_slice(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Value, builtin, to_value};
    use super::*;

    fn both_ways(oid: u32, value: &[u8]) {
        let ty = Arc::new(builtin(oid).expect("built in"));
        let mut out = b"before".to_vec();
        let mut printer = ColumnPrinter::new(&ty, Limits::default());
        let quick = match printer.print(value, &mut out) {
            Ok(Printed::Plain) => Ok(out.split_off(6)),
            Ok(Printed::Text(text)) => Ok(text.to_vec()),
            Err(error) => Err(error),
        };
        let long = to_value(&ty, value, Limits::default()).map(|value| match value {
            Value::Text(text) => text.into_bytes(),
            Value::Bytes(bytes) => bytes,
        });
        assert_eq!(quick, long, "type {oid}, value {value:?}");
        assert_eq!(out.get(..6), Some(b"before".as_slice()));
    }

    #[test]
    fn the_short_way_prints_what_the_long_way_prints() {
        let numbers = [
            0,
            1,
            -1,
            9,
            10,
            -10,
            99_999,
            1 << 40,
            -62_000_000_000_000_000,
            700_000_000_000_000,
            86_400_000_000,
            -1_000_001,
            500_000,
            9_223_371_331_199_999_999,
            9_223_371_331_200_000_000,
            -211_813_488_000_000_000,
            i64::MAX,
            i64::MIN,
        ];
        for number in numbers {
            let bytes = number.to_le_bytes();
            for oid in [20, 701, 1114, 1184] {
                both_ways(oid, &bytes);
            }
            for oid in [23, 26, 28, 29, 700, 1082] {
                both_ways(oid, bytes.get(..4).expect("four"));
                both_ways(oid, bytes.get(4..).expect("four"));
            }
            both_ways(21, bytes.get(..2).expect("two"));
            both_ways(16, bytes.get(..1).expect("one"));
            both_ways(2950, &[bytes, bytes].concat());
            both_ways(25, &bytes);
        }
        for day in [
            -2_451_545,
            -2_451_546,
            -730_000,
            -730_486,
            8_035,
            i32::MAX,
            i32::MIN,
        ] {
            both_ways(1082, &day.to_le_bytes());
        }
        both_ways(25, b"text\tand\\more");
        both_ways(23, b"abc");
    }

    #[test]
    fn numbers_have_their_digits() {
        let mut numbers: Vec<u64> = (0..12_000).collect();
        let powers = (4..20).map(|power| 10u64.pow(power));
        numbers.extend(powers.flat_map(|power| [power - 1, power, power + 1, power / 7 * 3]));
        numbers.extend((1..64).map(|shift| u64::MAX >> shift));
        numbers.push(u64::MAX);
        for number in numbers {
            for width in [1, 2, 4, 6, 9, 17] {
                let mut out = b"x".to_vec();
                digits(number, width, &mut out);
                assert_eq!(out, format!("x{number:0width$}").into_bytes());
            }
        }
        assert_eq!(eight_digits(1_230_045), *b"01230045");
    }

    #[test]
    fn numerics_of_every_shape() {
        let word = |word: u16| word.to_le_bytes().to_vec();
        let number = |head: &[u16], digits: &[u16]| -> Vec<u8> {
            head.iter().chain(digits).flat_map(|w| word(*w)).collect()
        };
        for head in [
            0x8000u16, 0x8080, 0x8100, 0x8481, 0xA001, 0x807F, 0x847E, 0x8FC3,
        ] {
            for digits in [&[][..], &[1], &[1, 2], &[9999, 1, 5000], &[7, 10_000]] {
                both_ways(1700, &number(&[head], digits));
            }
        }
        for head in [[0u16, 0], [0x4003, 2], [0x0007, 0xFFFE], [0x000C, 5]] {
            both_ways(1700, &number(&head, &[42, 17]));
        }
        for special in [0xC000u16, 0xD000, 0xF000, 0xE000] {
            both_ways(1700, &word(special));
        }
        both_ways(1700, &[0x80]);
        both_ways(1700, &[0x00, 0x80, 1]);
    }
}
