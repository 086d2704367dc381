//! Arbitrary-precision numbers: a header of two or four bytes, then digits to base 10000.
//!
//! ```text
//! short  10sddddd dwwwwwww   sign, dscale (6 bits), weight (7 bits, signed)
//! long   0sdddddd dddddddd   sign, dscale (14 bits), then weight as i16
//! other  11ss0000 00000000   NaN, Infinity, -Infinity
//! ```
//!
//! Truth: `numeric.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

/// Digits of one base-10000 digit.
const DEC_DIGITS: i32 = 4;

struct Header {
    negative: bool,
    display_scale: u16,
    weight: i16,
}

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let word = reader.u16()?;
    let header = match word & 0xC000 {
        0xC000 => return special(printer, word),
        0x8000 => short(word),
        sign => Header {
            negative: sign == 0x4000,
            display_scale: word & 0x3FFF,
            weight: reader.i16()?,
        },
    };
    let digits = reader.rest();
    if !digits.len().is_multiple_of(2) {
        return Err(Undecodable::damaged(
            "a numeric ends in half a digit",
            value.len(),
        ));
    }
    if header.negative {
        printer.byte(b'-')?;
    }
    print_whole(printer, &header, digits)?;
    print_fraction(printer, &header, digits)
}

fn special(printer: &mut Printer, word: u16) -> Result<(), Undecodable> {
    printer.text(match word & 0xF000 {
        0xC000 => "NaN",
        0xD000 => "Infinity",
        0xF000 => "-Infinity",
        _ => {
            return Err(Undecodable::damaged(
                "a special numeric has an unknown sign",
                0,
            ));
        }
    })
}

fn short(word: u16) -> Header {
    // Seven bits, the highest of them the sign.
    let weight = (word & 0x3F).cast_signed() - if word & 0x40 != 0 { 0x40 } else { 0 };
    Header {
        negative: word & 0x2000 != 0,
        display_scale: (word & 0x1F80) >> 7,
        weight,
    }
}

/// The digit of a place; beyond the stored ones there are zeros.
fn digit(digits: &[u8], place: i32) -> Result<u16, Undecodable> {
    let Ok(at) = usize::try_from(place) else {
        return Ok(0);
    };
    let at = at.saturating_mul(2);
    let Some(&[low, high]) = digits.get(at..at.saturating_add(2)) else {
        return Ok(0);
    };
    match u16::from_le_bytes([low, high]) {
        digit @ 0..10_000 => Ok(digit),
        _ => Err(Undecodable::damaged(
            "a numeric digit is not below 10000",
            at,
        )),
    }
}

fn print_whole(printer: &mut Printer, header: &Header, digits: &[u8]) -> Result<(), Undecodable> {
    let mut started = false;
    for place in 0..=i32::from(header.weight) {
        match digit(digits, place)? {
            0 if !started && place < i32::from(header.weight) => {}
            digit if started => printer.put(format_args!("{digit:04}"))?,
            digit => {
                printer.put(format_args!("{digit}"))?;
                started = true;
            }
        }
    }
    if header.weight < 0 {
        printer.byte(b'0')
    } else {
        Ok(())
    }
}

/// As many decimals as the display scale says, whatever is stored.
fn print_fraction(
    printer: &mut Printer,
    header: &Header,
    digits: &[u8],
) -> Result<(), Undecodable> {
    if header.display_scale == 0 {
        return Ok(());
    }
    printer.byte(b'.')?;
    let scale = i32::from(header.display_scale);
    let mut done = 0;
    while done < scale {
        let place = i32::from(header.weight) + 1 + done / DEC_DIGITS;
        let text = format!("{:04}", digit(digits, place)?);
        let wanted = usize::try_from((scale - done).min(DEC_DIGITS)).unwrap_or(0);
        printer.text(text.get(..wanted).unwrap_or_default())?;
        done += DEC_DIGITS;
    }
    Ok(())
}
