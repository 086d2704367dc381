//! Arbitrary-precision numbers: a header of two or four bytes, then digits to base 10000.
//!
//! ```text
//! short  10sddddd dwwwwwww   sign, dscale (6 bits), weight (7 bits, signed)
//! long   0sdddddd dddddddd   sign, dscale (14 bits), then weight as i16
//! other  11ss0000 00000000   NaN, Infinity, -Infinity
//! ```
//!
//! Truth: `numeric.c`.

use super::column::digits as append_digits;
use super::printer::Printer;
use super::undecodable::Undecodable;

/// Digits of one base-10000 digit.
const DEC_DIGITS: i32 = 4;

struct Header {
    negative: bool,
    display_scale: u16,
    weight: i16,
}

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    printer.appended(|out| append(value, out))
}

fn special_name(word: u16) -> Result<&'static str, Undecodable> {
    match word & 0xF000 {
        0xC000 => Ok("NaN"),
        0xD000 => Ok("Infinity"),
        0xF000 => Ok("-Infinity"),
        _ => Err(Undecodable::damaged(
            "a special numeric has an unknown sign",
            0,
        )),
    }
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

/// Appends the text of a number.
pub(super) fn append(value: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    let (&word, rest) = value
        .split_first_chunk::<2>()
        .ok_or(Undecodable::damaged("the value ends too early", 0))?;
    let word = u16::from_le_bytes(word);
    let (header, digits) = match word & 0xC000 {
        0xC000 => return append_special(word, out),
        0x8000 => (short(word), rest),
        sign => {
            let (&weight, rest) = rest
                .split_first_chunk::<2>()
                .ok_or(Undecodable::damaged("the value ends too early", 2))?;
            let header = Header {
                negative: sign == 0x4000,
                display_scale: word & 0x3FFF,
                weight: i16::from_le_bytes(weight),
            };
            (header, rest)
        }
    };
    if !digits.len().is_multiple_of(2) {
        return Err(Undecodable::damaged(
            "a numeric ends in half a digit",
            value.len(),
        ));
    }
    if header.negative {
        out.push(b'-');
    }
    append_whole(&header, digits, out)?;
    append_fraction(&header, digits, out)
}

fn append_special(word: u16, out: &mut Vec<u8>) -> Result<(), Undecodable> {
    out.extend_from_slice(special_name(word)?.as_bytes());
    Ok(())
}

fn append_whole(header: &Header, digits: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    let mut started = false;
    for place in 0..=i32::from(header.weight) {
        match digit(digits, place)? {
            0 if !started && place < i32::from(header.weight) => {}
            digit => {
                append_digits(digit.into(), if started { 4 } else { 1 }, out);
                started = true;
            }
        }
    }
    if header.weight < 0 {
        out.push(b'0');
    }
    Ok(())
}

/// As many decimals as the display scale says, whatever is stored.
fn append_fraction(header: &Header, digits: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
    if header.display_scale == 0 {
        return Ok(());
    }
    out.push(b'.');
    let scale = i32::from(header.display_scale);
    let mut done = 0;
    while done < scale {
        let place = i32::from(header.weight) + 1 + done / DEC_DIGITS;
        let start = out.len();
        append_digits(digit(digits, place)?.into(), 4, out);
        let wanted = usize::try_from((scale - done).min(DEC_DIGITS)).unwrap_or(0);
        out.truncate(start + wanted);
        done += DEC_DIGITS;
    }
    Ok(())
}
