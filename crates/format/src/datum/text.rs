//! Strings and bytes; truth: `varlena.c`, `char.c`, `name.c`.

use super::printer::Printer;
use super::reader::exact;
use super::style::ByteaOutput;
use super::undecodable::Undecodable;

pub(super) fn print_text(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    if let Some(at) = value.iter().position(|&byte| byte == 0) {
        return Err(Undecodable::damaged("text holds a zero byte", at));
    }
    printer.raw(value)
}

pub(super) fn print_bytea(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    match printer.style().bytea {
        ByteaOutput::Hex => {
            printer.text("\\x")?;
            hex(printer, value)
        }
        ByteaOutput::Escape => octal(printer, value),
    }
}

/// Bytes that are no plain characters as `\ooo`.
fn octal(printer: &mut Printer, bytes: &[u8]) -> Result<(), Undecodable> {
    for byte in bytes {
        match byte {
            b'\\' => printer.text("\\\\")?,
            b' '..=b'~' => printer.byte(*byte)?,
            other => printer.put(format_args!("\\{other:03o}"))?,
        }
    }
    Ok(())
}

pub(super) fn hex(printer: &mut Printer, bytes: &[u8]) -> Result<(), Undecodable> {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for byte in bytes {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        // Four bits always find their digit.
        let digits =
            [DIGITS.get(high), DIGITS.get(low)].map(|digit| digit.copied().unwrap_or(b'?'));
        printer.raw(&digits)?;
    }
    Ok(())
}

/// `"char"`: one byte; from 15 on a high one is an octal escape, and 0 is the empty string.
pub(super) fn print_char(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    match exact(value)? {
        [0] => Ok(()),
        [byte] if byte < 0x80 || printer.major() < 15 => printer.byte(byte),
        [byte] => printer.put(format_args!("\\{byte:03o}")),
    }
}

/// `name`: what stands before the first zero byte.
pub(super) fn print_name(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let end = value.iter().position(|&byte| byte == 0);
    let end = end.ok_or(Undecodable::damaged("a name has no end", value.len()))?;
    printer.raw(value.get(..end).unwrap_or_default())
}
