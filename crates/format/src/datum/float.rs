//! Floating point numbers in their shortest form; truth: `float.c`, `src/common/d2s.c`, `f2s.c`.

mod shortest;
#[cfg(test)]
mod tests;

use super::column::{digits, eight_digits};
use super::printer::Printer;
use super::reader::exact;
use super::undecodable::Undecodable;
use shortest::{Binary, Decimal};

/// From this decimal exponent on a `float4` is printed with an exponent.
const F32_WIDE: i32 = 6;
/// From this decimal exponent on a `float8` is printed with an exponent.
const F64_WIDE: i32 = 15;

/// `FLT_DIG`, `DBL_DIG`: decimal digits that are always kept.
const F32_DIGITS: i8 = 6;
const F64_DIGITS: i8 = 15;

pub(super) fn print_f32(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let number = f32::from_le_bytes(exact(value)?);
    match rounded_places(printer, F32_DIGITS).filter(|_| has_digits(number.into())) {
        Some(places) => rounded(printer, &format!("{number:.places$e}"), places),
        None => printer.appended(|out| append_f32(value, out)),
    }
}

pub(super) fn print_f64(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    f64_text(printer, f64::from_le_bytes(exact(value)?))
}

/// Prints a number as `float8out` does; geometric types are made of these.
pub(super) fn f64_text(printer: &mut Printer, number: f64) -> Result<(), Undecodable> {
    match rounded_places(printer, F64_DIGITS).filter(|_| has_digits(number)) {
        Some(places) => rounded(printer, &format!("{number:.places$e}"), places),
        None => printer.appended(|out| {
            append_number_f64(number, out);
            Ok(())
        }),
    }
}

/// The shortest text of a `float4`.
pub(super) fn append_f32(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    let number = f32::from_le_bytes(exact(value)?);
    if !has_digits(number.into()) {
        out.extend_from_slice(special(number.into()));
        return Ok(());
    }
    let mut buffer = zmij::Buffer::new();
    let short = buffer.format_finite(number);
    let binary = Binary::of_f32(number);
    // Below 10^F32_WIDE no decimal of nine digits lies halfway between two numbers.
    let is_plain = (1e-4..1e6).contains(&number.abs());
    if let Some(plain) = plain_text(short, &binary).filter(|_| is_plain) {
        out.extend_from_slice(plain);
        return Ok(());
    }
    let chosen = binary.choose(
        Decimal::parse_shortest(short),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    lay_out(number.is_sign_negative(), chosen, F32_WIDE, out);
    Ok(())
}

/// The shortest text of a `float8`.
pub(super) fn append_f64(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    append_number_f64(f64::from_le_bytes(exact(value)?), out);
    Ok(())
}

fn append_number_f64(number: f64, out: &mut Vec<u8>) {
    if !has_digits(number) {
        out.extend_from_slice(special(number));
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let short = buffer.format_finite(number);
    let binary = Binary::of_f64(number);
    // Below 10^F64_WIDE no decimal of 17 digits lies halfway between two numbers.
    let is_plain = (1e-4..1e15).contains(&number.abs());
    if let Some(plain) = plain_text(short, &binary).filter(|_| is_plain) {
        out.extend_from_slice(plain);
        return;
    }
    let chosen = binary.choose(
        Decimal::parse_shortest(short),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    lay_out(number.is_sign_negative(), chosen, F64_WIDE, out);
}

/// The number is neither zero nor infinite nor none at all.
fn has_digits(number: f64) -> bool {
    number.is_finite() && number != 0.0
}

fn special(number: f64) -> &'static [u8] {
    match number {
        _ if number.is_nan() => b"NaN",
        _ if number == f64::INFINITY => b"Infinity",
        _ if number == f64::NEG_INFINITY => b"-Infinity",
        _ if number.is_sign_negative() => b"-0",
        _ => b"0",
    }
}

/// What `zmij` printed without an exponent, as the server prints it. Nothing where the number may
/// lie exactly between two decimals, of which the server takes the even one.
#[inline]
fn plain_text<'a>(short: &'a str, binary: &Binary) -> Option<&'a [u8]> {
    if let Some(whole) = short.strip_suffix(".0") {
        return Some(whole.as_bytes());
    }
    let text = short.as_bytes();
    let is_even = text.last().is_some_and(|digit| digit % 2 == 0);
    // Such a number has one more digit behind the point than the decimal next to it, and as many
    // as binary ones.
    let places = usize::try_from(-binary.last_place()).unwrap_or(0);
    let is_decided = is_even || places > text.len() || {
        let point = text.iter().position(|byte| *byte == b'.')?;
        places != text.len() - point
    };
    is_decided.then_some(text)
}

/// Digits behind the first where `extra_float_digits` asks for rounded numbers instead of the
/// shortest ones.
fn rounded_places(printer: &Printer, digits: i8) -> Option<usize> {
    let extra = printer.style().extra_float_digits;
    let places = digits.saturating_add(extra).max(1) - 1;
    usize::try_from(places).ok().filter(|_| extra <= 0)
}

/// `%.{places+1}g` of a number that is written as `-d.ddde-x`.
fn rounded(printer: &mut Printer, text: &str, places: usize) -> Result<(), Undecodable> {
    let wide = i32::try_from(places + 1).unwrap_or(F64_WIDE);
    printer.appended(|out| {
        lay_out(text.starts_with('-'), Decimal::parse(text), wide, out);
        Ok(())
    })
}

const ZEROS: &[u8] = b"00000000000000000000";

/// Writes a decimal as PostgreSQL does: plainly from 1e-4 up to below `10^wide`.
fn lay_out(is_negative: bool, decimal: Decimal, wide: i32, out: &mut Vec<u8>) {
    let all = twenty_four_digits(decimal.digits);
    let all = all.as_flattened();
    let first = all.iter().position(|digit| *digit != b'0');
    let all = all.get(first.unwrap_or(0)..).unwrap_or_default();
    let last = all.iter().rposition(|digit| *digit != b'0');
    let digits = all.get(..=last.unwrap_or(0)).unwrap_or_default();
    // The place of the first digit; there are at most twenty.
    let exponent = decimal.exponent + i32::try_from(all.len()).unwrap_or(0) - 1;
    if is_negative {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= wide {
        with_exponent(digits, exponent, out);
    } else {
        // Between -4 and 14 here.
        let places = usize::try_from(exponent.unsigned_abs()).unwrap_or(0);
        match exponent {
            ..0 => {
                out.extend_from_slice(b"0.");
                out.extend_from_slice(ZEROS.get(..places - 1).unwrap_or_default());
                out.extend_from_slice(digits);
            }
            _ => without_exponent(digits, places + 1, out),
        }
    }
}

/// The number with zeros in front.
fn twenty_four_digits(number: u64) -> [[u8; 8]; 3] {
    const END: u64 = 100_000_000;
    [number / END / END, number / END % END, number % END]
        .map(|part| eight_digits(u32::try_from(part).unwrap_or(0)))
}

fn with_exponent(all: &[u8], exponent: i32, out: &mut Vec<u8>) {
    let (first, rest) = all.split_at_checked(1).unwrap_or((all, b""));
    out.extend_from_slice(first);
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest);
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    digits(exponent.unsigned_abs().into(), 2, out);
}

/// So many digits stand in front of the point.
fn without_exponent(digits: &[u8], whole_digits: usize, out: &mut Vec<u8>) {
    match digits.split_at_checked(whole_digits) {
        None | Some((_, b"")) => {
            out.extend_from_slice(digits);
            let missing = whole_digits.saturating_sub(digits.len());
            out.extend_from_slice(ZEROS.get(..missing).unwrap_or_default());
        }
        Some((whole, fraction)) => {
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    }
}
