//! One JSON object a line, with the columns' names as keys.
//!
//! Numbers, booleans, `json` and `jsonb` stand as what they are; `NaN` and the infinities, which
//! JSON does not have, and all other values are strings with the text that `COPY` writes.

use pgclinic_format::datum::{Printed, TypeInfo, TypeKind};

use super::{Form, RowOfTexts};
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// The format `jsonl`.
pub struct JsonLines;

impl Form for JsonLines {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn extension(&self) -> &'static str {
        "jsonl"
    }

    fn head(&self, _table: &Table, _out: &mut Vec<u8>) {}

    fn row(&self, table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        out.push(b'{');
        for (column, number) in table.columns.iter().zip(0..) {
            if number > 0 {
                out.push(b',');
            }
            string(column.name.as_bytes(), out);
            out.push(b':');
            let Some(value) = row.value(number) else {
                out.extend_from_slice(b"null");
                continue;
            };
            let start = out.len();
            match texts.print(number, value, out) {
                None => out.extend_from_slice(b"null"),
                Some(Printed::Plain) => plain(&column.ty, start, out),
                Some(Printed::Text(text)) => escaped(&column.ty, text, out),
            }
        }
        out.extend_from_slice(b"}\n");
    }

    fn tail(&self, _out: &mut Vec<u8>) {}

    fn text_writer(&self) -> Option<RowOfTexts> {
        Some(row_of_texts)
    }
}

fn row_of_texts(table: &Table, texts: &[Option<Vec<u8>>], out: &mut Vec<u8>) {
    out.push(b'{');
    for ((column, text), number) in table.columns.iter().zip(texts).zip(0..) {
        if number > 0 {
            out.push(b',');
        }
        string(column.name.as_bytes(), out);
        out.push(b':');
        let start = out.len();
        match text {
            None => out.extend_from_slice(b"null"),
            Some(text) if shape(&column.ty) == Shape::Boolean => {
                out.extend_from_slice(text);
                plain(&column.ty, start, out);
            }
            Some(text) => escaped(&column.ty, text, out),
        }
    }
    out.extend_from_slice(b"}\n");
}

/// What a value is in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Number,
    Boolean,
    Json,
    String,
}

fn shape(ty: &TypeInfo) -> Shape {
    let mut ty = ty;
    // Domains over domains.
    for _ in 0..64 {
        match &ty.kind {
            TypeKind::Domain(base) => ty = base,
            TypeKind::Base => break,
            _ => return Shape::String,
        }
    }
    match ty.oid {
        16 => Shape::Boolean,
        20 | 21 | 23 | 26 | 700 | 701 | 1700 => Shape::Number,
        114 | 3802 => Shape::Json,
        _ => Shape::String,
    }
}

/// Text that was appended from `start` on and needs no escape.
fn plain(ty: &TypeInfo, start: usize, out: &mut Vec<u8>) {
    match shape(ty) {
        Shape::Number if is_number(out.get(start..).unwrap_or_default()) => {}
        Shape::Boolean => {
            let word: &[u8] = match out.get(start) {
                Some(b't') => b"true",
                _ => b"false",
            };
            out.truncate(start);
            out.extend_from_slice(word);
        }
        _ => {
            out.insert(start, b'"');
            out.push(b'"');
        }
    }
}

fn escaped(ty: &TypeInfo, text: &[u8], out: &mut Vec<u8>) {
    match shape(ty) {
        Shape::Number if is_number(text) => out.extend_from_slice(text),
        // A line holds one row: breaks between the parts of a json are no part of it.
        Shape::Json => out.extend(text.iter().map(|byte| match byte {
            b'\n' | b'\r' => b' ',
            other => *other,
        })),
        _ => string(text, out),
    }
}

fn is_number(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_digit)
}

/// A string between quotes.
pub(super) fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            other => out.push(*other),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::datum::builtin;

    fn shown(oid: u32, text: &str) -> String {
        let mut out = Vec::new();
        escaped(&builtin(oid).expect("built in"), text.as_bytes(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_are_what_json_has_for_them() {
        assert_eq!(shown(701, "1.5e+100"), "1.5e+100");
        assert_eq!(shown(701, "NaN"), "\"NaN\"");
        assert_eq!(shown(1700, "-Infinity"), "\"-Infinity\"");
        assert_eq!(shown(114, "{\"a\":\n1}"), "{\"a\": 1}");
        assert_eq!(
            shown(25, "say \"a\\b\"\u{1}\t"),
            "\"say \\\"a\\\\b\\\"\\u0001\\t\""
        );
        let mut out = b"t".to_vec();
        plain(&builtin(16).expect("built in"), 0, &mut out);
        assert_eq!(out, b"true");
    }
}
