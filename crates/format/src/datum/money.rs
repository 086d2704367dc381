//! Money: the smallest unit in an `i64`, printed as a locale has it; truth: `cash_out` in `cash.c`.

use super::printer::Printer;
use super::reader::exact;
use super::style::{MoneyFormat, MoneySigns};
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let amount = i64::from_le_bytes(exact(value)?);
    let text = text(&printer.style().money, amount);
    printer.raw(&text)
}

fn text(format: &MoneyFormat, amount: i64) -> Vec<u8> {
    let (signs, sign) = if amount < 0 {
        (format.negative, format.minus.as_ref())
    } else {
        (format.positive, format.plus.as_ref())
    };
    let digits = digits(format, amount.unsigned_abs());
    arranged(signs, sign, &format.symbol, &digits)
}

/// The digits, with point and separators.
fn digits(format: &MoneyFormat, amount: u64) -> Vec<u8> {
    let places = usize::from(format.places);
    let digits = format!("{amount:0width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let mut out = Vec::new();
    for (place, digit) in whole.bytes().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left.is_multiple_of(usize::from(format.group.max(1))) {
            out.extend_from_slice(&format.separator);
        }
        out.push(digit);
    }
    if places > 0 {
        out.push(format.point);
        out.extend_from_slice(fraction.as_bytes());
    }
    out
}

/// Symbol, sign and digits in the order of the locale.
fn arranged(signs: MoneySigns, sign: &[u8], symbol: &[u8], digits: &[u8]) -> Vec<u8> {
    let blank = |space: u8| if signs.space == space { &b" "[..] } else { b"" };
    // Between symbol and digits, and beside the sign.
    let (one, two) = (blank(1), blank(2));
    let parts: [&[u8]; 5] = match (signs.position, signs.symbol_first) {
        (0, true) => [b"(", symbol, one, digits, b")"],
        (0, false) => [b"(", digits, one, symbol, b")"],
        (2, true) => [symbol, one, digits, two, sign],
        (2, false) => [digits, one, symbol, two, sign],
        (3, true) => [sign, two, symbol, one, digits],
        (3, false) => [digits, one, sign, two, symbol],
        (4, true) => [symbol, two, sign, one, digits],
        (4, false) => [digits, one, symbol, two, sign],
        (_, true) => [sign, two, symbol, one, digits],
        (_, false) => [sign, two, digits, one, symbol],
    };
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn locales_arrange_amounts_in_their_way() {
        let shown =
            |format: &MoneyFormat, amount| String::from_utf8(text(format, amount)).expect("text");
        assert_eq!(shown(&MoneyFormat::C, -123_456_789), "-$1,234,567.89");
        assert_eq!(shown(&MoneyFormat::C, 5), "$0.05");
        assert_eq!(
            shown(&MoneyFormat::C, i64::MIN),
            "-$92,233,720,368,547,758.08"
        );
        // de_DE, ja_JP, and one with brackets.
        let signs = MoneySigns {
            symbol_first: false,
            space: 1,
            position: 1,
        };
        let german = MoneyFormat {
            point: b',',
            separator: Cow::Borrowed(b"."),
            symbol: Cow::Borrowed("€".as_bytes()),
            positive: signs,
            negative: signs,
            ..MoneyFormat::C
        };
        assert_eq!(shown(&german, -123_456), "-1.234,56 €");
        let japanese = MoneyFormat {
            places: 0,
            symbol: Cow::Borrowed("￥".as_bytes()),
            ..MoneyFormat::C
        };
        assert_eq!(shown(&japanese, 1_234_567), "￥1,234,567");
        let brackets = MoneySigns {
            symbol_first: true,
            space: 0,
            position: 0,
        };
        let booked = MoneyFormat {
            negative: brackets,
            ..MoneyFormat::C
        };
        assert_eq!(shown(&booked, -100), "($1.00)");
    }
}
