//! Bit strings: a count of bits, then the bits from the highest down; truth: `varbit.c`.

use super::printer::Printer;
use super::reader::Reader;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let mut reader = Reader::new(value);
    let bits = reader.count("the count of bits is negative")?;
    let bytes = reader.bytes(bits.div_ceil(8))?;
    reader.end()?;
    let mut left = bits;
    for byte in bytes {
        let mut text = [b'0'; 8];
        for (place, digit) in text.iter_mut().enumerate() {
            *digit += (byte >> (7 - place)) & 1;
        }
        printer.raw(text.get(..left.min(8)).unwrap_or_default())?;
        left = left.saturating_sub(8);
    }
    Ok(())
}
