//! Values as cells of a file of columns.
//!
//! What of a type stands there is told in `docs/guide/columns.md`. A column has one kind, so that a
//! single value that has no place in it makes the whole column one of texts: that is a [`Refusal`],
//! and the table is written once more.

use std::sync::Arc;

use pgclinic_cluster::Charset;
use pgclinic_columnar::{ColumnKind, Field, cells};
use pgclinic_format::datum::{Printed, TypeInfo, TypeKind};

use super::Texts;
use crate::shape::{Column, ColumnEncoding};
use crate::values::{Fault, FaultKind, Row};

/// Days from 1970-01-01 to 2000-01-01, where the server begins to count.
const DAYS: i32 = 10_957;
/// The same in microseconds.
const MICROSECONDS: i64 = 946_684_800_000_000;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// Digits that 16 bytes hold.
const DECIMAL_DIGITS: i32 = 38;
/// Digits of one digit of a numeric.
const DEC_DIGITS: i32 = 4;

/// A value that has no place in the kind of its column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// Index among the columns that are written.
    pub(crate) column: usize,
    /// As what the column can be written.
    pub(crate) holding: ColumnEncoding,
    /// What was found.
    pub(crate) why: &'static str,
}

/// How the values of a column become cells.
#[derive(Clone, Debug)]
pub(super) struct ArrowEncoder {
    kind: ColumnKind,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The stored bytes, nearly.
    Stored,
    /// From what the type's send function gives.
    Sent,
    /// A number: straight from the stored bytes where it is short, else as [`Way::Sent`].
    Decimal { precision: u8, scale: u8 },
    /// Their text.
    Printed,
    /// Their text in the encoding of the database.
    PrintedRaw,
}

/// Why there is no cell.
enum EncodeError {
    Refused(ColumnEncoding, &'static str),
    Fault(FaultKind),
}

/// The columns of a file. A table without any has rows all the same: they are nulls of a column
/// without a name.
pub(crate) fn fields_of(columns: &[Column], charset: Charset) -> Vec<Field> {
    if columns.is_empty() {
        return vec![Field {
            name: String::new(),
            kind: ColumnKind::Boolean,
        }];
    }
    let field = |column: &Column| Field {
        name: column.name.clone(),
        kind: ArrowEncoder::of(column, charset).kind,
    };
    columns.iter().map(field).collect()
}

impl ArrowEncoder {
    pub(super) fn of(column: &Column, charset: Charset) -> Self {
        let own = match column.holding {
            ColumnEncoding::Nearest => nearest(&column.ty, column.typmod),
            ColumnEncoding::Text => None,
            ColumnEncoding::Bytes => return ArrowEncoder::RAW,
        };
        // Text of an encoding that is not that of the file is no text there, not even inside lists.
        let is_raw = charset == Charset::Raw;
        match own {
            Some(kind) if is_raw && holds_text(&kind) => ArrowEncoder::RAW,
            Some(kind) => {
                let way = match kind {
                    ColumnKind::List(_) => Way::Sent,
                    ColumnKind::Decimal { precision, scale } => Way::Decimal { precision, scale },
                    _ => Way::Stored,
                };
                ArrowEncoder { kind, way }
            }
            None if is_raw => ArrowEncoder::RAW,
            None => ArrowEncoder {
                kind: ColumnKind::Text,
                way: Way::Printed,
            },
        }
    }

    const RAW: Self = ArrowEncoder {
        kind: ColumnKind::Binary,
        way: Way::PrintedRaw,
    };
}

fn holds_text(kind: &ColumnKind) -> bool {
    match kind {
        ColumnKind::Text => true,
        ColumnKind::List(element) => **element == ColumnKind::Text,
        _ => false,
    }
}

/// The kind nearest to a type; nothing where that is its text.
fn nearest(ty: &TypeInfo, typmod: i32) -> Option<ColumnKind> {
    let ty = below_domains(ty);
    match &ty.kind {
        TypeKind::Base => scalar(ty.oid, typmod),
        TypeKind::Array(element) => {
            // A domain inside an array has its own bounds, which the array does not tell.
            let inner = below_domains(element);
            let typmod = match element.kind {
                TypeKind::Domain(_) => -1,
                _ => typmod,
            };
            let is_base = inner.kind == TypeKind::Base;
            let is_text = matches!(inner.oid, 25 | 1042 | 1043 | 114) && is_base;
            let kind = if is_text {
                Some(ColumnKind::Text)
            } else {
                scalar(inner.oid, typmod).filter(|_| is_base)
            };
            kind.map(|kind| ColumnKind::List(Box::new(kind)))
        }
        _ => None,
    }
}

/// The type that a domain is over.
pub(crate) fn below_domains(ty: &TypeInfo) -> &TypeInfo {
    let mut ty = ty;
    // Domains over domains.
    for _ in 0..64 {
        match &ty.kind {
            TypeKind::Domain(base) => ty = base,
            _ => break,
        }
    }
    ty
}

fn scalar(oid: u32, typmod: i32) -> Option<ColumnKind> {
    Some(match oid {
        16 => ColumnKind::Boolean,
        17 => ColumnKind::Binary,
        20 => ColumnKind::Int64,
        21 => ColumnKind::Int16,
        23 => ColumnKind::Int32,
        26 | 28 | 29 => ColumnKind::UInt32,
        700 => ColumnKind::Float32,
        701 => ColumnKind::Float64,
        1082 => ColumnKind::Date,
        1083 => ColumnKind::Time,
        1114 => ColumnKind::Timestamp,
        1184 => ColumnKind::TimestampUtc,
        1700 => return decimal(typmod),
        2950 => ColumnKind::Uuid,
        _ => return None,
    })
}

/// `numeric(precision, scale)`, where 16 bytes hold it. Truth: `make_numeric_typmod` in
/// `numeric.c`.
fn decimal(typmod: i32) -> Option<ColumnKind> {
    let bound = typmod.checked_sub(4).filter(|bound| *bound >= 0)?;
    let precision = u8::try_from(bound >> 16 & 0xFFFF).ok()?;
    // Eleven bits, the highest of them the sign.
    let scale = u8::try_from(((bound & 0x7FF) ^ 1024) - 1024).ok()?;
    let fits = (1..=38).contains(&precision) && scale <= precision;
    fits.then_some(ColumnKind::Decimal { precision, scale })
}

impl Texts {
    /// Appends a row as cells. Where a value has none there is a null, and why is remembered.
    pub(crate) fn pack(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        let packings = Arc::clone(&self.packings);
        if packings.is_empty() {
            // In the place of columns: see `fields_of`.
            cells::put_null(out);
        }
        for (packing, column) in packings.iter().zip(0..) {
            match row.value(column) {
                Some(value) => self.pack_value(packing, column, value, out),
                None => cells::put_null(out),
            }
        }
    }

    fn pack_value(
        &mut self,
        packing: &ArrowEncoder,
        column: usize,
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        let start = cells::begin(out);
        let packed = match packing.way {
            Way::Stored => stored(&packing.kind, value, out),
            Way::Sent => self.sent(column, &packing.kind, value, out),
            Way::Decimal { precision, scale } => match short_unscaled(value, precision, scale) {
                Some(number) => {
                    out.extend_from_slice(&number.to_le_bytes());
                    Ok(())
                }
                None => self.sent(column, &packing.kind, value, out),
            },
            Way::Printed => self.printed(column, value, out),
            Way::PrintedRaw => self.printed_raw(column, value, out),
        };
        let why = match packed {
            Ok(()) => return cells::end(start, out),
            Err(why) => why,
        };
        // The cell that was begun is a null.
        out.truncate(start);
        match why {
            EncodeError::Refused(holding, why) => self.refusals.push(Refusal {
                column,
                holding,
                why,
            }),
            EncodeError::Fault(kind) => self.faults.push(Fault { column, kind }),
        }
    }

    /// What had no place in its column since the last call.
    pub(crate) fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
    }

    fn printed(
        &mut self,
        column: usize,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let Some(printer) = self.printers.get_mut(column) else {
            return Ok(());
        };
        match printer.print(value, out) {
            Ok(Printed::Plain) => Ok(()),
            Ok(Printed::Text(text)) => match self.charset.recode(text, &mut self.recoded) {
                Ok(text) => {
                    out.extend_from_slice(text);
                    Ok(())
                }
                Err(_) => Err(NO_TEXT),
            },
            Err(error) => Err(EncodeError::Fault(FaultKind::Undecodable(error))),
        }
    }

    fn printed_raw(
        &mut self,
        column: usize,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let Some(printer) = self.printers.get_mut(column) else {
            return Ok(());
        };
        match printer.print(value, out) {
            Ok(Printed::Plain) => Ok(()),
            Ok(Printed::Text(text)) => {
                out.extend_from_slice(text);
                Ok(())
            }
            Err(error) => Err(EncodeError::Fault(FaultKind::Undecodable(error))),
        }
    }

    fn sent(
        &mut self,
        column: usize,
        kind: &ColumnKind,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let Some(ty) = self.types.get(column) else {
            return Ok(());
        };
        let (charset, memory) = (self.charset, &mut self.recoded);
        let mut recode = |text: &[u8], out: &mut Vec<u8>| {
            let recoded = charset.recode(text, memory);
            let (Ok(text) | Err(text)) = recoded;
            out.extend_from_slice(text);
            recoded.is_ok()
        };
        self.sent.clear();
        match self.writer.write(ty, value, &mut self.sent, &mut recode) {
            Ok(true) => {}
            Ok(false) => return Err(NO_TEXT),
            Err(error) => return Err(EncodeError::Fault(FaultKind::Undecodable(error))),
        }
        match kind {
            ColumnKind::List(element) => list(element, &self.sent, out),
            other => element(other, &self.sent, out),
        }
    }
}

const NO_TEXT: EncodeError = EncodeError::Refused(
    ColumnEncoding::Bytes,
    "bytes that are no text in the encoding of the database",
);

/// A refusal for which the text of the value is at hand.
const fn as_text(why: &'static str) -> EncodeError {
    EncodeError::Refused(ColumnEncoding::Text, why)
}

/// A value of fixed width, or `bytea`. Of a damaged row, or where the type was guessed, it may have
/// any length.
fn stored(kind: &ColumnKind, value: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if kind.width().is_some_and(|width| width != value.len()) {
        return Err(SHAPE);
    }
    match kind {
        ColumnKind::Date => {
            let days = number(value, i32::from_le_bytes)?;
            if days == i32::MIN || days == i32::MAX {
                return Err(INFINITE);
            }
            let days = days.checked_add(DAYS).ok_or(BEYOND)?;
            out.extend_from_slice(&days.to_le_bytes());
        }
        ColumnKind::Timestamp | ColumnKind::TimestampUtc => {
            let time = number(value, i64::from_le_bytes)?;
            if time == i64::MIN || time == i64::MAX {
                return Err(INFINITE);
            }
            let time = time.checked_add(MICROSECONDS).ok_or(BEYOND)?;
            out.extend_from_slice(&time.to_le_bytes());
        }
        ColumnKind::Time => {
            let time = number(value, i64::from_le_bytes)?;
            if !(0..DAY_MICROSECONDS).contains(&time) {
                return Err(as_text("24:00:00, which is not within a day"));
            }
            out.extend_from_slice(&time.to_le_bytes());
        }
        _ => out.extend_from_slice(value),
    }
    Ok(())
}

const INFINITE: EncodeError = as_text("infinity");
const BEYOND: EncodeError = as_text("a time beyond the range of the kind");
const SHAPE: EncodeError = as_text("a value of another length than its type has");

fn number<T, const N: usize>(value: &[u8], of: fn([u8; N]) -> T) -> Result<T, EncodeError> {
    let bytes: [u8; N] = value.try_into().map_err(|_| SHAPE)?;
    Ok(of(bytes))
}

/// A value as its type's send function gives it.
fn element(kind: &ColumnKind, sent: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match kind {
        ColumnKind::Decimal { precision, scale } => {
            let number = unscaled(sent, *precision, *scale)?;
            out.extend_from_slice(&number.to_le_bytes());
            Ok(())
        }
        ColumnKind::Text | ColumnKind::Binary => {
            out.extend_from_slice(sent);
            Ok(())
        }
        ColumnKind::Uuid => stored(kind, sent, out),
        // Of fixed width and big-endian.
        _ => {
            let mut turned = [0; 8];
            let turned = turned.get_mut(..sent.len()).ok_or(SHAPE)?;
            turned.copy_from_slice(sent);
            turned.reverse();
            stored(kind, turned, out)
        }
    }
}

/// The elements of an array of one dimension that begins at 1. Truth: `array_send` in
/// `arrayfuncs.c`.
///
/// ```text
/// dimensions i32   has nulls i32   type of elements u32   of each dimension: length i32, first index i32
/// of each element: length i32, -1 for null, and its bytes
/// ```
fn list(kind: &ColumnKind, sent: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut rest = sent;
    let dimensions = next(&mut rest)?;
    let (_nulls, _type) = (next(&mut rest)?, next(&mut rest)?);
    match dimensions {
        0 => return Ok(()),
        1 => {}
        _ => return Err(as_text("an array of more than one dimension")),
    }
    let count = next(&mut rest)?;
    if next(&mut rest)? != 1 {
        return Err(as_text("an array that does not begin at 1"));
    }
    for _ in 0..count {
        let length = next(&mut rest)?;
        let Ok(length) = usize::try_from(length) else {
            cells::put_null(out);
            continue;
        };
        let (sent, behind) = rest.split_at_checked(length).ok_or(SHAPE)?;
        rest = behind;
        let start = cells::begin(out);
        element(kind, sent, out)?;
        cells::end(start, out);
    }
    Ok(())
}

fn next(rest: &mut &[u8]) -> Result<i32, EncodeError> {
    let (bytes, behind) = rest.split_first_chunk().ok_or(SHAPE)?;
    *rest = behind;
    Ok(i32::from_be_bytes(*bytes))
}

/// A numeric times ten to the power of `scale`. Truth: `numeric_send` in `numeric.c`.
///
/// ```text
/// count of digits i16   weight of the first i16   sign u16   digits to show behind the point i16   digits to base 10000, i16 each
/// ```
fn unscaled(sent: &[u8], precision: u8, scale: u8) -> Result<i128, EncodeError> {
    let (words, _) = sent.as_chunks::<2>();
    let [_, weight, sign, _, digits @ ..] = words else {
        return Err(SHAPE);
    };
    let weight = i32::from(i16::from_be_bytes(*weight));
    let is_negative = match u16::from_be_bytes(*sign) {
        0 => false,
        0x4000 => true,
        0xC000 => return Err(as_text("NaN, which a decimal does not have")),
        _ => return Err(as_text("infinity, which a decimal does not have")),
    };
    let too_long = || as_text("a number of more digits than its type allows");
    let mut sum = 0i128;
    for (place, digit) in (0i32..).zip(digits) {
        let digit = i128::from(i16::from_be_bytes(*digit));
        let power = DEC_DIGITS * (weight - place) + i32::from(scale);
        let part = match power {
            _ if digit == 0 => 0,
            0..DECIMAL_DIGITS => digit
                .checked_mul(ten_to(power.unsigned_abs()))
                .ok_or_else(too_long)?,
            -3..0 if digit % ten_to(power.unsigned_abs()) == 0 => {
                digit / ten_to(power.unsigned_abs())
            }
            _ => return Err(too_long()),
        };
        sum = sum.checked_add(part).ok_or_else(too_long)?;
    }
    if sum >= ten_to(u32::from(precision)) {
        return Err(too_long());
    }
    Ok(if is_negative { -sum } else { sum })
}

/// The same of a stored number with the short header and few digits; nothing where anything about
/// it asks for a closer look. Truth: `NumericShort` in `numeric.c`.
fn short_unscaled(value: &[u8], precision: u8, scale: u8) -> Option<i128> {
    /// Digits to base 10000 of which eight bytes hold any number.
    const FEW: usize = 4;
    let (words, []) = value.as_chunks::<2>() else {
        return None;
    };
    let [head, digits @ ..] = words else {
        return None;
    };
    let head = u16::from_le_bytes(*head);
    (head & 0xC000 == 0x8000 && digits.len() <= FEW).then_some(())?;
    let mut sum = 0u64;
    for digit in digits {
        let digit = u16::from_le_bytes(*digit);
        (digit < 10_000).then_some(())?;
        sum = sum * 10_000 + u64::from(digit);
    }
    // Seven bits, the highest of them the sign.
    let weight = i32::from(head & 0x3F) - i32::from(head & 0x40);
    let last = weight + 1 - i32::try_from(digits.len()).ok()?;
    let power = DEC_DIGITS * last + i32::from(scale);
    let ten_to = |power: u32| 10u64.checked_pow(power);
    let number = match u32::try_from(power) {
        Ok(power) => sum.checked_mul(ten_to(power)?)?,
        Err(_) => {
            let unit = ten_to(power.unsigned_abs())?;
            sum.is_multiple_of(unit).then_some(sum / unit)?
        }
    };
    let fits = ten_to(precision.into()).is_none_or(|end| number < end);
    let number = i128::from(number);
    fits.then_some(if head & 0x2000 != 0 { -number } else { number })
}

/// For powers up to 38.
fn ten_to(power: u32) -> i128 {
    10i128.pow(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(weight: i16, sign: u16, digits: &[i16]) -> Vec<u8> {
        let count = i16::try_from(digits.len()).expect("few");
        let words = [count, weight, sign.cast_signed(), 0];
        let words = words.iter().chain(digits);
        words.flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numbers_keep_their_digits() {
        let of = |weight, sign, digits: &[i16], scale| {
            unscaled(&sent(weight, sign, digits), 38, scale).ok()
        };
        assert_eq!(of(0, 0, &[], 2), Some(0));
        assert_eq!(of(0, 0x4000, &[12, 3400], 2), Some(-1234));
        assert_eq!(of(1, 0, &[1, 2, 5000], 3), Some(10_002_500));
        assert_eq!(of(-1, 0, &[1], 4), Some(1));
        // A digit behind those that the type has.
        assert_eq!(of(-1, 0, &[1], 3), None);
        assert_eq!(of(0, 0xC000, &[], 2), None);
        assert_eq!(of(20, 0, &[1], 0), None);
        assert!(unscaled(&sent(0, 0, &[1000]), 3, 0).is_err());
    }

    #[test]
    fn short_numbers_are_read_alike_on_both_ways() {
        let digits: [&[u16]; 6] = [
            &[],
            &[7],
            &[12, 3400],
            &[1, 2, 5000],
            &[9999, 9999, 9999, 9999],
            &[0, 1],
        ];
        for digits in digits {
            for weight in -3i16..6 {
                for (sign, sent_sign) in [(0u16, 0u16), (0x2000, 0x4000)] {
                    let bits = (weight & 0x7F).cast_unsigned();
                    let words = [[0x8000 | sign | bits].as_slice(), digits].concat();
                    let stored: Vec<u8> =
                        words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    let signed: Vec<i16> = digits.iter().map(|digit| digit.cast_signed()).collect();
                    for (precision, scale) in [(10, 2), (4, 0), (38, 8), (19, 19), (3, 3)] {
                        let long = unscaled(&sent(weight, sent_sign, &signed), precision, scale);
                        let short = short_unscaled(&stored, precision, scale);
                        let what = format!("{digits:?} {weight} {precision} {scale}");
                        assert!(short.is_none() || short == long.ok(), "{what}: {short:?}");
                    }
                }
            }
        }
        let of = |words: [u16; 3]| {
            let stored = words.map(u16::to_le_bytes);
            short_unscaled(stored.as_flattened(), 10, 2)
        };
        assert_eq!(of([0x8000 | 2 << 7, 1234, 5600]), Some(123_456));
        assert_eq!(of([0xA000 | 2 << 7, 1234, 5600]), Some(-123_456));
        assert_eq!(of([0x8000, 1, 10_000]), None);
    }

    #[test]
    fn a_value_of_another_length_than_its_type_is_refused() {
        for (kind, length) in [
            (ColumnKind::Int32, 2),
            (ColumnKind::Uuid, 15),
            (ColumnKind::Boolean, 0),
        ] {
            let mut out = Vec::new();
            let value = vec![1; length];
            let is_refused =
                |done| matches!(done, Err(EncodeError::Refused(ColumnEncoding::Text, _)));
            assert!(is_refused(stored(&kind, &value, &mut out)));
            assert!(is_refused(element(&kind, &value, &mut out)));
            assert_eq!(out, Vec::<u8>::new());
        }
    }

    #[test]
    fn a_typmod_tells_precision_and_scale() {
        let of = |precision: i32, scale: i32| decimal(((precision << 16) | (scale & 0x7FF)) + 4);
        let kind = |precision, scale| Some(ColumnKind::Decimal { precision, scale });
        assert_eq!(of(10, 2), kind(10, 2));
        assert_eq!(of(38, 38), kind(38, 38));
        assert_eq!((of(39, 2), of(5, -2), of(2, 5)), (None, None, None));
        assert_eq!(decimal(-1), None);
    }

    #[test]
    fn lists_begin_at_one_and_have_one_dimension() {
        let sent = |words: &[i32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        let packed = |words: &[i32]| {
            let mut out = Vec::new();
            let done = list(&ColumnKind::Int32, &sent(words), &mut out);
            done.is_ok().then_some(out)
        };
        assert_eq!(packed(&[0, 0, 23]), Some(Vec::new()));
        let mut expected = Vec::new();
        cells::put(&7i32.to_le_bytes(), &mut expected);
        cells::put_null(&mut expected);
        assert_eq!(packed(&[1, 1, 23, 2, 1, 4, 7, -1]), Some(expected));
        assert_eq!(packed(&[1, 0, 23, 1, 0, 4, 7]), None);
        assert_eq!(packed(&[2, 0, 23, 1, 1, 1, 1, 4, 7]), None);
    }
}
