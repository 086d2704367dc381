//! One `INSERT` a row, for any server with the same columns.

use pgclinic_format::datum::Printed;

use super::{Form, RowOfTexts};
use crate::shape::{Column, Table};
use crate::texts::Texts;
use crate::values::Row;

/// The format `sql`.
pub struct Inserts;

impl Form for Inserts {
    fn name(&self) -> &'static str {
        "sql"
    }

    fn extension(&self) -> &'static str {
        "sql"
    }

    fn head(&self, _table: &Table, out: &mut Vec<u8>) {
        out.extend_from_slice(b"SET standard_conforming_strings = on;\nBEGIN;\n");
    }

    fn row(&self, table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        statement(table, out, &mut |column, number, out| {
            value(column, number, row, texts, out)
        });
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"COMMIT;\n");
    }

    fn text_writer(&self) -> Option<RowOfTexts> {
        Some(row_of_texts)
    }
}

/// Writes the value of a column, by its number.
type WriteValue<'a> = &'a mut dyn FnMut(&Column, usize, &mut Vec<u8>);

fn statement(table: &Table, out: &mut Vec<u8>, write_value: WriteValue<'_>) {
    out.extend_from_slice(b"INSERT INTO ");
    name(&table.schema, out);
    out.push(b'.');
    name(&table.name, out);
    if table.columns.is_empty() {
        out.extend_from_slice(b" DEFAULT VALUES;\n");
        return;
    }
    for (column, number) in table.columns.iter().zip(0..) {
        out.extend_from_slice(if number == 0 { b" (" } else { b", " });
        name(&column.name, out);
    }
    // Columns that are always numbered by the server take the numbers that they had.
    out.extend_from_slice(b") OVERRIDING SYSTEM VALUE VALUES (");
    for (column, number) in table.columns.iter().zip(0..) {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_value(column, number, out);
    }
    out.extend_from_slice(b");\n");
}

fn row_of_texts(table: &Table, texts: &[Option<Vec<u8>>], out: &mut Vec<u8>) {
    statement(table, out, &mut |column, number, out| match texts
        .get(number)
        .and_then(Option::as_ref)
    {
        None => out.extend_from_slice(b"NULL"),
        Some(text) if is_number(column, text) => out.extend_from_slice(text),
        Some(text) => literal(text, out),
    });
}

/// A whole number needs no quotes.
fn is_number(column: &Column, text: &[u8]) -> bool {
    matches!(column.ty.oid, 20 | 21 | 23 | 26) && text.last().is_some_and(u8::is_ascii_digit)
}

fn value(column: &Column, number: usize, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
    let Some(value) = row.value(number) else {
        out.extend_from_slice(b"NULL");
        return;
    };
    let start = out.len();
    match texts.print(number, value, out) {
        None => out.extend_from_slice(b"NULL"),
        Some(Printed::Text(text)) => literal(text, out),
        Some(Printed::Plain) => {
            if !is_number(column, out.get(start..).unwrap_or_default()) {
                out.insert(start, b'\'');
                out.push(b'\'');
            }
        }
    }
}

fn literal(text: &[u8], out: &mut Vec<u8>) {
    doubled(b'\'', text, out);
}

fn name(name: &str, out: &mut Vec<u8>) {
    doubled(b'"', name.as_bytes(), out);
}

/// Between quotes, which are doubled inside.
fn doubled(quote: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(quote);
    for part in text.split_inclusive(|byte| *byte == quote) {
        out.extend_from_slice(part);
        if part.last() == Some(&quote) {
            out.push(quote);
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        let mut out = Vec::new();
        literal(b"it's", &mut out);
        name("a\"b", &mut out);
        assert_eq!(out, b"'it''s'\"a\"\"b\"");
    }
}
