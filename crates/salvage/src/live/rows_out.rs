//! From what `COPY` gives to the bytes of a form.
//!
//! ```text
//! csv, copy     COPY … (FORMAT csv), COPY …      as it comes
//! binary        COPY … (FORMAT binary)           without its head and its end, which the file has once
//! others        COPY …                           line by line, value by value
//! ```

use crate::formats::{Form, RowOfTexts};
use crate::shape::Table;

/// Head of `COPY (FORMAT binary)`: the signature, flags, and the length of an extension that no
/// server writes.
const BINARY_HEAD: usize = 19;
/// A count of columns that ends it.
const BINARY_TAIL: usize = 2;

/// How rows are asked for, and what is made of the answer.
#[derive(Clone, Copy)]
pub(super) enum RowsOut {
    Csv,
    Text,
    Binary,
    Written(RowOfTexts),
}

impl RowsOut {
    /// Nothing for a form that takes values as they are stored.
    pub(super) fn of(form: &dyn Form) -> Option<Self> {
        match form.name() {
            "csv" => Some(RowsOut::Csv),
            "copy" => Some(RowsOut::Text),
            "binary" => Some(RowsOut::Binary),
            _ => form.text_writer().map(RowsOut::Written),
        }
    }

    /// Behind `COPY (…) TO STDOUT`.
    pub(super) fn with(self) -> &'static str {
        match self {
            RowsOut::Csv => " (FORMAT csv)",
            RowsOut::Binary => " (FORMAT binary)",
            RowsOut::Text | RowsOut::Written(_) => "",
        }
    }
}

/// One answer on its way into a file.
pub(super) struct Answer<'t> {
    rows: RowsOut,
    table: &'t Table,
    /// Bytes of the head that are still to come.
    head_left: usize,
    /// What may be the end, or the beginning of a line.
    kept: Vec<u8>,
    out: Vec<u8>,
}

impl<'t> Answer<'t> {
    pub(super) fn new(rows: RowsOut, table: &'t Table) -> Self {
        Answer {
            rows,
            table,
            head_left: BINARY_HEAD,
            kept: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What is to be written now; valid until the next call.
    pub(super) fn take<'a>(&'a mut self, data: &'a [u8]) -> &'a [u8] {
        self.out.clear();
        match self.rows {
            RowsOut::Csv | RowsOut::Text => return data,
            RowsOut::Binary => self.without_ends(data),
            RowsOut::Written(write) => self.lines(data, write),
        }
        &self.out
    }

    fn without_ends(&mut self, data: &[u8]) {
        let skipped = self.head_left.min(data.len());
        self.head_left -= skipped;
        self.kept
            .extend_from_slice(data.get(skipped..).unwrap_or_default());
        let ready = self.kept.len().saturating_sub(BINARY_TAIL);
        self.out.extend(self.kept.drain(..ready));
    }

    fn lines(&mut self, data: &[u8], write: RowOfTexts) {
        self.kept.extend_from_slice(data);
        let mut done = 0;
        while let Some(rest) = self.kept.get(done..) {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                break;
            };
            let line = rest.get(..end).unwrap_or_default();
            write(
                self.table,
                &texts(line, self.table.columns.len()),
                &mut self.out,
            );
            done += end + 1;
        }
        self.kept.drain(..done);
    }
}

/// The values of a line of `COPY` text. Truth: `CopyAttributeOutText` in
/// `src/backend/commands/copyto.c`.
fn texts(line: &[u8], columns: usize) -> Vec<Option<Vec<u8>>> {
    let fields = line.split(|byte| *byte == b'\t').take(columns);
    fields
        .map(|field| (field != b"\\N").then(|| unescaped(field)))
        .collect()
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => *other,
                None => b'\\',
            },
            other => *other,
        };
        text.push(byte);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_copy_puts_them_together() {
        let found = texts(b"a\\tb\\\\N\t\\N\t\tx\\n\\r\\v\\b\\f", 4);
        let text = |text: &str| Some(text.as_bytes().to_vec());
        let expected = [
            text("a\tb\\N"),
            None,
            text(""),
            text("x\n\r\u{b}\u{8}\u{c}"),
        ];
        assert_eq!(found, expected);
        assert_eq!(texts(b"", 0), []);
    }

    #[test]
    fn a_binary_answer_loses_its_head_and_its_end_wherever_it_is_cut() {
        let whole =
            b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01a\0\x01\xFF\xFF\xFF\xFF\xFF\xFF";
        for size in 1..whole.len() {
            let table = super::super::tables::nothing();
            let mut answer = Answer::new(RowsOut::Binary, &table);
            let mut found = Vec::new();
            for part in whole.chunks(size) {
                found.extend_from_slice(answer.take(part));
            }
            assert_eq!(found, b"\0\x01\0\0\0\x01a\0\x01\xFF\xFF\xFF\xFF", "{size}");
        }
    }
}
