//! Money in the C locale: cents in an `i64`, printed with `$` and commas; truth: `cash.c`.

use super::printer::Printer;
use super::reader::exact;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let cents = i64::from_le_bytes(exact(value)?);
    let whole = (cents.unsigned_abs() / 100).to_string();
    printer.text(if cents < 0 { "-$" } else { "$" })?;
    for (place, digit) in whole.bytes().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            printer.byte(b',')?;
        }
        printer.byte(digit)?;
    }
    printer.put(format_args!(".{:02}", cents.unsigned_abs() % 100))
}
