//! A JSON string with its escapes; truth: `escape_json` in `json.c`.

use super::printer::Printer;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, text: &[u8]) -> Result<(), Undecodable> {
    printer.byte(b'"')?;
    for part in text.split_inclusive(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let Some((&last, before)) = part.split_last() else {
            continue;
        };
        printer.raw(before)?;
        match last {
            8 => printer.text("\\b")?,
            9 => printer.text("\\t")?,
            10 => printer.text("\\n")?,
            12 => printer.text("\\f")?,
            13 => printer.text("\\r")?,
            b'"' | b'\\' => printer.raw(&[b'\\', last])?,
            0..0x20 => printer.put(format_args!("\\u{last:04x}"))?,
            _ => printer.byte(last)?,
        }
    }
    printer.byte(b'"')
}
