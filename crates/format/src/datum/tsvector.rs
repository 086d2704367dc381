//! Documents for text search: a count, a word for each lexeme (has positions 1 bit, length 11,
//! offset 20), then the lexemes, each with its positions behind it at a multiple of two.
//!
//! Truth: `ts_type.h`, `tsvector.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.count("the count of lexemes is negative")?;
    let mut words = Reader::new(reader.bytes(count.saturating_mul(4))?);
    let lexemes = reader.rest();
    for place in 0..count {
        if place > 0 {
            printer.byte(b' ')?;
        }
        let (text, positions) = lexeme(&mut words, lexemes)?;
        print_quoted(printer, text)?;
        if let Some(mut positions) = positions {
            print_positions(printer, &mut positions)?;
        }
    }
    Ok(())
}

/// The text of the next lexeme, and where its positions begin, if it has some.
pub(super) fn lexeme<'a>(
    words: &mut Reader<'_>,
    lexemes: &'a [u8],
) -> Result<(&'a [u8], Option<Reader<'a>>), Undecodable> {
    let word = words.u32()?;
    let length = usize::try_from(word >> 1 & 0x7FF).unwrap_or(usize::MAX);
    let offset = usize::try_from(word >> 12).unwrap_or(usize::MAX);
    let mut lexeme = Reader::starting(lexemes, offset);
    let text = lexeme.bytes(length)?;
    lexeme.align(2, 0);
    Ok((text, (word & 1 != 0).then_some(lexeme)))
}

/// Between single quotes, with quotes and backslashes doubled.
pub(super) fn print_quoted(printer: &mut Printer, lexeme: &[u8]) -> Result<(), Undecodable> {
    printer.byte(b'\'')?;
    printer.escaped(lexeme, |byte| matches!(byte, b'\'' | b'\\').then_some(byte))?;
    printer.byte(b'\'')
}

/// A count, then 14 bits of position below two of weight each.
fn print_positions(printer: &mut Printer, lexeme: &mut Reader<'_>) -> Result<(), Undecodable> {
    for place in 0..lexeme.u16()? {
        let position = lexeme.u16()?;
        let weight = match position >> 14 {
            3 => "A",
            2 => "B",
            1 => "C",
            _ => "",
        };
        let separator = if place > 0 { "," } else { ":" };
        printer.put(format_args!("{separator}{}{weight}", position & 0x3FFF))?;
    }
    Ok(())
}
