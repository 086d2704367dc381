//! The shortest decimal that stands for a binary number.
//!
//! PostgreSQL takes the shortest decimal strictly between the midpoints to the neighbours, and
//! of two that are equally near the even one. `zmij` also accepts a decimal exactly on a midpoint
//! when the mantissa is even, and so does Rust.

use std::fmt;

/// The size of a finite number: `mantissa * 2^exponent`.
pub(super) struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The lower neighbour is half as far as the upper one.
    is_power: bool,
}

impl Binary {
    pub(super) fn of_f32(number: f32) -> Self {
        Self::of_parts(u64::from(number.to_bits()), 23, 0xFF, 150)
    }

    pub(super) fn of_f64(number: f64) -> Self {
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

    /// The number is an odd one times two to the power of this.
    pub(super) fn last_place(&self) -> i32 {
        self.exponent + self.mantissa.trailing_zeros().cast_signed()
    }

    /// The decimal that PostgreSQL prints, given a shortest one, a way to get the number to
    /// some digits behind the point, and whether a decimal reads back as the number.
    pub(super) fn choose(
        &self,
        shortest: Decimal,
        rounded: impl Fn(usize) -> String,
        reads_back: impl Fn(&str) -> bool,
    ) -> Decimal {
        let fits =
            |decimal: &Decimal| !self.has_midpoint(decimal) && reads_back(&decimal.to_string());
        let mut chosen = shortest;
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
pub(super) struct Decimal {
    pub(super) digits: u64,
    pub(super) exponent: i32,
}

impl Decimal {
    /// Reads `ddd.ddde±x` without its sign, with or without point and exponent.
    pub(super) fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text
            .trim_start_matches('-')
            .split_once('e')
            .unwrap_or((text.trim_start_matches('-'), "0"));
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

    /// The same without the zeros that `zmij` puts at the end of whole numbers.
    pub(super) fn parse_shortest(text: &str) -> Decimal {
        let mut decimal = Decimal::parse(text);
        while decimal.digits >= 10 && decimal.digits.is_multiple_of(10) {
            decimal.digits /= 10;
            decimal.exponent += 1;
        }
        decimal
    }

    /// Whether this is `mantissa * 2^exponent`, by comparing the powers of two and the rest.
    fn equals(&self, mantissa: u128, exponent: i32) -> bool {
        if self.digits == 0 || mantissa == 0 || self.exponent.unsigned_abs() > 27 {
            return false;
        }
        let (zeros, other_zeros) = (self.digits.trailing_zeros(), mantissa.trailing_zeros());
        // Nearly always they differ in this.
        if self.exponent + zeros.cast_signed() != exponent + other_zeros.cast_signed() {
            return false;
        }
        let (odd, other_odd) = (u128::from(self.digits >> zeros), mantissa >> other_zeros);
        // 5^27 has 63 bits, and neither side more than 60.
        let fives = 5_u128.pow(self.exponent.unsigned_abs());
        if self.exponent >= 0 {
            odd.checked_mul(fives) == Some(other_odd)
        } else {
            other_odd.checked_mul(fives) == Some(odd)
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}e{}", self.digits, self.exponent)
    }
}
