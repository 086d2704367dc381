//! Floating point numbers in their shortest form; truth: `float.c`, `src/common/d2s.c`, `f2s.c`.
//!
//! PostgreSQL takes the shortest decimal strictly between the midpoints to the neighbours, and
//! of two that are equally near the even one. Rust also accepts a decimal exactly on a midpoint
//! when the mantissa is even, and takes the upper one of two.

use std::fmt;

use super::printer::Printer;
use super::reader::exact;
use super::undecodable::Undecodable;

/// From this decimal exponent on a `float4` is printed with an exponent.
const F32_WIDE: i32 = 6;
/// From this decimal exponent on a `float8` is printed with an exponent.
const F64_WIDE: i32 = 15;

/// `FLT_DIG`, `DBL_DIG`: decimal digits that are always kept.
const F32_DIGITS: i8 = 6;
const F64_DIGITS: i8 = 15;

pub(super) fn print_f32(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let number = f32::from_le_bytes(exact(value)?);
    if !number.is_finite() || number == 0.0 {
        return special(printer, f64::from(number));
    }
    if let Some(places) = rounded_places(printer, F32_DIGITS) {
        return rounded(printer, &format!("{number:.places$e}"), places);
    }
    let size = Binary::of_f32(number);
    let text = size.choose(
        &ShortText::of(format_args!("{number:e}")),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    lay_out(printer, number.is_sign_negative(), &text, F32_WIDE)
}

pub(super) fn print_f64(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    f64_text(printer, f64::from_le_bytes(exact(value)?))
}

/// Prints a number as `float8out` does; geometric types are made of these.
pub(super) fn f64_text(printer: &mut Printer, number: f64) -> Result<(), Undecodable> {
    if !number.is_finite() || number == 0.0 {
        return special(printer, number);
    }
    if let Some(places) = rounded_places(printer, F64_DIGITS) {
        return rounded(printer, &format!("{number:.places$e}"), places);
    }
    let size = Binary::of_f64(number);
    let text = size.choose(
        &ShortText::of(format_args!("{number:e}")),
        |digits| format!("{number:.digits$e}"),
        |text| text.parse() == Ok(number.abs()),
    );
    lay_out(printer, number.is_sign_negative(), &text, F64_WIDE)
}

fn special(printer: &mut Printer, number: f64) -> Result<(), Undecodable> {
    printer.text(match number {
        _ if number.is_nan() => "NaN",
        _ if number == f64::INFINITY => "Infinity",
        _ if number == f64::NEG_INFINITY => "-Infinity",
        _ if number.is_sign_negative() => "-0",
        _ => "0",
    })
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
    let decimal = Decimal::parse(text);
    let wide = i32::try_from(places + 1).unwrap_or(F64_WIDE);
    lay_out(printer, text.starts_with('-'), &decimal, wide)
}

/// The size of a finite number: `mantissa * 2^exponent`.
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The lower neighbour is half as far as the upper one.
    is_power: bool,
}

impl Binary {
    fn of_f32(number: f32) -> Self {
        Self::of_parts(u64::from(number.to_bits()), 23, 0xFF, 150)
    }

    fn of_f64(number: f64) -> Self {
        Self::of_parts(number.to_bits(), 52, 0x7FF, 1075)
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most eleven bits")]
    fn of_parts(bits: u64, width: u32, exponent_mask: u64, bias: i32) -> Self {
        let fraction = bits & ((1 << width) - 1);
        // At most eleven bits.
        let exponent = ((bits >> width) & exponent_mask) as i32;
        match exponent {
            0 => Binary {
                mantissa: fraction,
                exponent: 1 - bias,
                is_power: false,
            },
            _ => Binary {
                mantissa: fraction | 1 << width,
                exponent: exponent - bias,
                is_power: fraction == 0 && exponent > 1,
            },
        }
    }

    /// The decimal that PostgreSQL prints, given Rust's shortest one, a way to get the number to
    /// some digits behind the point, and whether a decimal reads back as the number.
    fn choose(
        &self,
        shortest: &ShortText,
        rounded: impl Fn(usize) -> String,
        reads_back: impl Fn(&str) -> bool,
    ) -> Decimal {
        let fits =
            |decimal: &Decimal| !self.has_midpoint(decimal) && reads_back(&decimal.to_string());
        let mut chosen = Decimal::parse(shortest.as_str());
        if self.has_midpoint(&chosen) {
            // 17 digits always fit.
            let longer = (0..17).map(|digits| Decimal::parse(&rounded(digits)));
            chosen = longer
                .clone()
                .find(|decimal| fits(decimal))
                .or(longer.last())
                .unwrap_or(chosen);
        }
        match self.even_of_tie(&chosen) {
            Some(even) if fits(&even) => even,
            _ => chosen,
        }
    }

    /// Whether the decimal lies exactly halfway to a neighbour.
    fn has_midpoint(&self, decimal: &Decimal) -> bool {
        let mantissa = u128::from(self.mantissa);
        let lower = if self.is_power {
            decimal.equals(4 * mantissa - 1, self.exponent - 2)
        } else {
            decimal.equals((2 * mantissa).saturating_sub(1), self.exponent - 1)
        };
        lower || decimal.equals(2 * mantissa + 1, self.exponent - 1)
    }

    /// When the number is exactly between an odd decimal and the next one: that even one.
    fn even_of_tie(&self, decimal: &Decimal) -> Option<Decimal> {
        if decimal.digits.is_multiple_of(2) {
            return None;
        }
        let tie = |digits: u64| {
            let between = Decimal {
                digits,
                exponent: decimal.exponent - 1,
            };
            between.equals(u128::from(self.mantissa), self.exponent)
        };
        let ten_times = decimal.digits.checked_mul(10)?;
        let digits = match () {
            () if tie(ten_times - 5) => decimal.digits - 1,
            () if tie(ten_times + 5) => decimal.digits + 1,
            () => return None,
        };
        Some(Decimal {
            digits,
            exponent: decimal.exponent,
        })
    }
}

/// `digits * 10^exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// Reads `d.ddde±x` without its sign, as Rust prints it.
    fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text
            .trim_start_matches('-')
            .split_once('e')
            .unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let places = i32::try_from(fraction.len()).unwrap_or(0);
        let digits = whole.bytes().chain(fraction.bytes());
        let digits = digits.fold(0u64, |number, digit| {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            number.saturating_mul(10).saturating_add(digit)
        });
        Decimal {
            digits,
            exponent: exponent.parse().unwrap_or(0) - places,
        }
    }

    /// Whether this is `mantissa * 2^exponent`, by comparing the powers of two and the rest.
    fn equals(&self, mantissa: u128, exponent: i32) -> bool {
        if self.digits == 0 || mantissa == 0 || self.exponent.unsigned_abs() > 27 {
            return false;
        }
        let (zeros, other_zeros) = (self.digits.trailing_zeros(), mantissa.trailing_zeros());
        let twos = self.exponent + zeros.cast_signed();
        let (odd, other_odd) = (u128::from(self.digits >> zeros), mantissa >> other_zeros);
        // 5^27 has 63 bits, and neither side more than 60.
        let fives = 5_u128.pow(self.exponent.unsigned_abs());
        let same = if self.exponent >= 0 {
            odd.checked_mul(fives) == Some(other_odd)
        } else {
            other_odd.checked_mul(fives) == Some(odd)
        };
        same && twos == exponent + other_zeros.cast_signed()
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}e{}", self.digits, self.exponent)
    }
}

/// A number as text, without memory of its own: the shortest forms have at most 24 letters.
struct ShortText {
    bytes: [u8; 32],
    len: usize,
}

impl ShortText {
    fn of(text: fmt::Arguments<'_>) -> Self {
        let mut short = ShortText {
            bytes: [0; 32],
            len: 0,
        };
        let written = fmt::Write::write_fmt(&mut short, text);
        assert!(written.is_ok(), "a number has no more letters than these");
        short
    }

    fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.len).unwrap_or_default();
        str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let place = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

const ZEROS: &str = "00000000000000000000";

/// Writes a decimal as PostgreSQL does: plainly from 1e-4 up to below `10^wide`.
fn lay_out(
    printer: &mut Printer,
    is_negative: bool,
    decimal: &Decimal,
    wide: i32,
) -> Result<(), Undecodable> {
    let all = ShortText::of(format_args!("{}", decimal.digits));
    let all = all.as_str();
    let digits = all.trim_end_matches('0');
    // The place of the first digit; there are at most twenty.
    let exponent = decimal.exponent + i32::try_from(all.len()).unwrap_or(0) - 1;
    printer.text(if is_negative { "-" } else { "" })?;
    if exponent < -4 || exponent >= wide {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
        let (point, sign) = (
            if rest.is_empty() { "" } else { "." },
            if exponent < 0 { '-' } else { '+' },
        );
        return printer.put(format_args!(
            "{first}{point}{rest}e{sign}{:02}",
            exponent.unsigned_abs()
        ));
    }
    // Between -4 and 14 here.
    let places = usize::try_from(exponent.unsigned_abs()).unwrap_or(0);
    if exponent < 0 {
        printer.text("0.")?;
        printer.text(ZEROS.get(..places - 1).unwrap_or_default())?;
        return printer.text(digits);
    }
    match digits.split_at_checked(places + 1) {
        None | Some((_, "")) => {
            printer.text(digits)?;
            let missing = (places + 1).saturating_sub(digits.len());
            printer.text(ZEROS.get(..missing).unwrap_or_default())
        }
        Some((whole, fraction)) => {
            printer.text(whole)?;
            printer.text(".")?;
            printer.text(fraction)
        }
    }
}
