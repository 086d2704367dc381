//! Prints the values of one column into memory of the caller's, the commonest types on a short way.
//!
//! The text is that of [`super::to_value`] for every type; a test compares the two ways.

use std::sync::Arc;

use super::date_time;
use super::reader::exact;
use super::style::Style;
use super::types::{TypeInfo, TypeKind};
use super::undecodable::Undecodable;
use super::{Limits, Prober, register};

/// How a value was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed<'a> {
    /// Appended to the caller's memory: digits, letters and signs that need no escape in any text format.
    Plain,
    /// The text, for the caller to escape.
    Text(&'a [u8]),
}

type Short = fn(&[u8], &mut Vec<u8>) -> Result<(), Undecodable>;

/// Values of the type, and of all that it is made of, have a text here.
pub fn is_printed(ty: &TypeInfo) -> bool {
    let mut open = vec![ty];
    while let Some(ty) = open.pop() {
        match &ty.kind {
            TypeKind::Unknown => return false,
            TypeKind::Base if register::printer(ty).is_none() => return false,
            TypeKind::Base | TypeKind::Enum(_) | TypeKind::Bytes => {}
            TypeKind::Domain(inner)
            | TypeKind::Array(inner)
            | TypeKind::Range(inner)
            | TypeKind::Multirange(inner) => open.push(inner),
            TypeKind::Composite(fields) => {
                let used = fields.iter().filter(|field| !field.dropped);
                open.extend(used.map(|field| field.ty.as_ref()));
            }
        }
    }
    true
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

    /// The text of a value: a fixed one whole, a varlena's payload.
    #[inline]
    pub fn print<'a>(
        &'a mut self,
        value: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Printed<'a>, Undecodable> {
        match self.way {
            Way::Short(print) => print(value, out).map(|()| Printed::Plain),
            Way::AsItIs => match value.contains(&0) {
                false => Ok(Printed::Text(value)),
                // The long way tells where.
                true => self.prober.print(&self.ty, value).map(Printed::Text),
            },
            Way::Long => self.prober.print(&self.ty, value).map(Printed::Text),
        }
    }
}

fn way(ty: &TypeInfo, style: &Style) -> Way {
    let is_styled = matches!(ty.oid, 1082 | 1114 | 1184) && !style.has_plain_dates();
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
    match u16::try_from(number) {
        Ok(number @ 0..10_000) if width <= 4 => few_digits(number, width, out),
        _ => many_digits(number, width, out),
    }
}

#[inline(never)]
fn many_digits(number: u64, width: usize, out: &mut Vec<u8>) {
    digits(number / 10_000, width.saturating_sub(4), out);
    // Below 10,000.
    few_digits((number % 10_000) as u16, 4, out);
}

/// Four digits are appended as one word and what is in front of the number is shifted out of it: copying a handful of bytes of
/// unknown length takes longer than making them.
#[inline]
fn few_digits(number: u16, width: usize, out: &mut Vec<u8>) {
    // Each is one of ten digits.
    let digit = |unit: u16| b'0' + (number / unit % 10) as u8;
    let word = u32::from_be_bytes([digit(1000), digit(100), digit(10), digit(1)]);
    let len = match number {
        0..10 => 1,
        10..100 => 2,
        100..1000 => 3,
        _ => 4,
    };
    let len = len.max(width).min(4);
    let end = out.len() + len;
    out.extend_from_slice(&(word << (8 * (4 - len))).to_be_bytes());
    out.truncate(end);
}

fn uuid(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let bytes: [u8; 16] = exact(value)?;
    let digit = |at: u8| DIGITS.get(usize::from(at)).copied().unwrap_or(b'?');
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
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
            for oid in [20, 1114, 1184] {
                both_ways(oid, &bytes);
            }
            for oid in [23, 26, 28, 29, 1082] {
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
