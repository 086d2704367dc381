//! `COPY … TO … (FORMAT csv, HEADER)`. Truth: `CopyAttributeOutCSV` in
//! `src/backend/commands/copyto.c`.

use pgclinic_format::datum::Printed;

use super::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// The format `csv`.
pub struct Csv;

impl Form for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn extension(&self) -> &'static str {
        "csv"
    }

    fn head(&self, table: &Table, out: &mut Vec<u8>) {
        header(table.columns.iter().map(|column| column.name.as_str()), out);
    }

    fn row(&self, _table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        let is_alone = row.len() == 1;
        for column in 0..row.len() {
            if column > 0 {
                out.push(b',');
            }
            let Some(value) = row.value(column) else {
                continue;
            };
            if let Some(Printed::Text(text)) = texts.print(column, value, out) {
                field(text, is_alone, out);
            }
        }
        out.push(b'\n');
    }

    fn tail(&self, _out: &mut Vec<u8>) {}
}

/// The names of the columns, as one line.
pub(crate) fn header<'n>(names: impl ExactSizeIterator<Item = &'n str>, out: &mut Vec<u8>) {
    let is_alone = names.len() == 1;
    for (number, name) in names.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        field(name.as_bytes(), is_alone, out);
    }
    out.push(b'\n');
}

/// A text, between quotes where it needs them: the empty one would be null, and `\.` alone on a
/// line an end.
pub(crate) fn field(text: &[u8], is_alone: bool, out: &mut Vec<u8>) {
    let quoted = text.is_empty() || (is_alone && text == b"\\.") || has_special(text);
    if !quoted {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for part in text.split_inclusive(|byte| *byte == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

/// A byte needs quotes around its text.
fn has_special(text: &[u8]) -> bool {
    let is_special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    // Without a branch for each byte the compiler looks at all of a block at once.
    let of_block = |block: &[u8; BLOCK]| {
        block
            .iter()
            .fold(false, |special, byte| special | is_special(byte))
    };
    blocks.iter().any(of_block) || rest.iter().any(is_special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stand_where_the_server_puts_them() {
        let shown = |text: &str, is_alone| {
            let mut out = Vec::new();
            field(text.as_bytes(), is_alone, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(shown("plain ' text", false), "plain ' text");
        assert_eq!(shown("", false), "\"\"");
        assert_eq!(shown("a,b", false), "\"a,b\"");
        assert_eq!(shown("say \"a\"", false), "\"say \"\"a\"\"\"");
        assert_eq!(shown("\\.", true), "\"\\.\"");
        assert_eq!(shown("\\.", false), "\\.");
        let long = "a text that is longer than a block, with a quote at its end: \"";
        assert_eq!(shown(long, false), format!("\"{long}\"\""));
    }
}
