//! Types of extensions, known by name; truth: `contrib/hstore`, `contrib/ltree`, `contrib/cube`.

use super::float::f64_text;
use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

/// A count with a version bit, an end offset for each key and value in turn, then their bytes.
pub(super) fn print_hstore(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let (count, mut ends, mut texts) = hstore_head(value)?;
    for place in 0..count {
        if place > 0 {
            printer.text(", ")?;
        }
        let (_, key) = hstore_part(&mut ends, &mut texts)?;
        print_hstore_text(printer, key)?;
        printer.text("=>")?;
        match hstore_part(&mut ends, &mut texts)? {
            (end, _) if end & HSTORE_NULL != 0 => printer.text("NULL")?,
            (_, text) => print_hstore_text(printer, text)?,
        }
    }
    Ok(())
}

/// Set in the end of a value that is null.
pub(super) const HSTORE_NULL: u32 = 0x4000_0000;

/// How many pairs there are, the ends of their parts, and the parts.
pub(super) fn hstore_head(value: &[u8]) -> Result<(usize, Reader<'_>, Reader<'_>), Undecodable> {
    const IS_NEW: u32 = 0x8000_0000;
    let mut reader = Reader::new(value);
    let head = reader.u32()?;
    if head & IS_NEW == 0 && !value.is_empty() && head != 0 {
        return Err(Undecodable::unsupported(
            "hstore of before 9.0 is not decoded",
        ));
    }
    let count = usize::try_from(head & 0x0FFF_FFFF).unwrap_or(usize::MAX);
    let ends = Reader::new(reader.bytes(count.saturating_mul(8))?);
    Ok((count, ends, Reader::new(reader.rest())))
}

pub(super) fn hstore_part<'a>(
    ends: &mut Reader<'_>,
    texts: &mut Reader<'a>,
) -> Result<(u32, &'a [u8]), Undecodable> {
    let word = ends.u32()?;
    let end = usize::try_from(word & 0x3FFF_FFFF).unwrap_or(usize::MAX);
    let length = end.checked_sub(texts.at());
    let length = length.ok_or_else(|| ends.damaged("an hstore entry ends before it begins"))?;
    Ok((word, texts.bytes(length)?))
}

fn print_hstore_text(printer: &mut Printer, text: &[u8]) -> Result<(), Undecodable> {
    printer.byte(b'"')?;
    printer.escaped(text, |byte| matches!(byte, b'"' | b'\\').then_some(b'\\'))?;
    printer.byte(b'"')
}

/// A count of levels, then each level's length and name, padded to eight bytes.
pub(super) fn print_ltree(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let count = reader.u16()?;
    reader.bytes(2.min(reader.peek().len()))?;
    for place in 0..count {
        if place > 0 {
            printer.byte(b'.')?;
        }
        // Levels are placed from the varlena header on.
        reader.align(8, super::reader::HEADER);
        let length = usize::from(reader.u16()?);
        printer.raw(reader.bytes(length)?)?;
    }
    Ok(())
}

/// Dimensions with a bit that says point, then one corner or two.
pub(super) fn print_cube(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let head = reader.u32()?;
    let dimensions = usize::try_from(head & 0x7FFF_FFFF).unwrap_or(usize::MAX);
    let corner = |reader: &mut Reader<'_>| {
        let mut numbers = Vec::new();
        for _ in 0..dimensions {
            numbers.push(reader.f64()?);
        }
        Ok(numbers)
    };
    let lower = corner(&mut reader)?;
    print_corner(printer, &lower)?;
    if head & 0x8000_0000 == 0 {
        let upper = corner(&mut reader)?;
        if lower != upper {
            printer.byte(b',')?;
            print_corner(printer, &upper)?;
        }
    }
    reader.end()
}

fn print_corner(printer: &mut Printer, numbers: &[f64]) -> Result<(), Undecodable> {
    printer.byte(b'(')?;
    for (place, &number) in numbers.iter().enumerate() {
        if place > 0 {
            printer.text(", ")?;
        }
        f64_text(printer, number)?;
    }
    printer.byte(b')')
}
