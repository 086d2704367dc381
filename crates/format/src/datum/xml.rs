//! XML is text, but the output function rewrites the declaration at its head: the encoding goes,
//! and nothing is left of it that says no more than version 1.0.
//!
//! Truth: `xml_out_internal`, `parse_xml_decl`, `print_xml_decl` in `xml.c`.

use super::printer::Printer;
use super::text::print_text;
use super::undecodable::Undecodable;

pub(super) fn print(printer: &mut Printer, value: &[u8]) -> Result<(), Undecodable> {
    let Some((declaration, rest)) = split(value) else {
        return print_text(printer, value);
    };
    let version = attribute(declaration, b"version").unwrap_or(b"1.0");
    let standalone = attribute(declaration, b"standalone");
    if version == b"1.0" && standalone.is_none() {
        return print_text(printer, rest.strip_prefix(b"\n").unwrap_or(rest));
    }
    printer.text("<?xml version=\"")?;
    printer.raw(version)?;
    printer.byte(b'"')?;
    if let Some(standalone) = standalone {
        printer.text(" standalone=\"")?;
        printer.raw(standalone)?;
        printer.byte(b'"')?;
    }
    printer.text("?>")?;
    print_text(printer, rest)
}

/// What stands between `<?xml` and `?>`, and what follows.
fn split(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = value.strip_prefix(b"<?xml")?;
    body.first().filter(|byte| byte.is_ascii_whitespace())?;
    let end = body.windows(2).position(|pair| pair == b"?>")?;
    Some((body.get(..end)?, body.get(end + 2..)?))
}

/// The quoted value of an attribute of the declaration.
fn attribute<'a>(declaration: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = declaration
        .windows(name.len())
        .position(|window| window == name)?;
    let after = declaration
        .get(at + name.len()..)?
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (quote, text) = after.split_first()?;
    let end = text
        .iter()
        .position(|byte| byte == quote)
        .filter(|_| matches!(quote, b'"' | b'\''))?;
    text.get(..end)
}
