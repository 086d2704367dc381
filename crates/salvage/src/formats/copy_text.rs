//! `COPY … TO …` as text. Truth: `CopyAttributeOutText` in `src/backend/commands/copyto.c`.

use pgclinic_format::datum::Printed;

use super::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// The format `copy`.
pub struct CopyText;

impl Form for CopyText {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn extension(&self) -> &'static str {
        "copy"
    }

    fn head(&self, _table: &Table, _out: &mut Vec<u8>) {}

    fn row(&self, _table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        for column in 0..row.len() {
            if column > 0 {
                out.push(b'\t');
            }
            value(row, column, texts, out);
        }
        out.push(b'\n');
    }

    fn tail(&self, _out: &mut Vec<u8>) {}
}

fn value(row: &Row<'_>, column: usize, texts: &mut Texts, out: &mut Vec<u8>) {
    let Some(value) = row.value(column) else {
        out.extend_from_slice(b"\\N");
        return;
    };
    if texts.print_simple(column, value, out) {
        return;
    }
    match texts.print(column, value, out) {
        Some(Printed::Plain) => {}
        Some(Printed::Text(text)) => escape(text, out),
        None => out.extend_from_slice(b"\\N"),
    }
}

/// A row without these columns' values, which come by themselves: what stands before the first of
/// them, between them, and behind the last.
pub(crate) fn around(row: &Row<'_>, columns: &[usize], texts: &mut Texts) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut open = Vec::new();
    for column in 0..row.len() {
        if column > 0 {
            open.push(b'\t');
        }
        if columns.contains(&column) {
            parts.push(std::mem::take(&mut open))
        } else {
            value(row, column, texts, &mut open)
        }
    }
    open.push(b'\n');
    parts.push(open);
    parts
}

/// Appends text with a backslash before what COPY reads otherwise.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((clean, byte, behind)) = split_at_special(rest) {
        out.extend_from_slice(clean);
        out.push(b'\\');
        out.push(match byte {
            8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            11 => b'v',
            12 => b'f',
            b'\r' => b'r',
            other => other,
        });
        rest = behind;
    }
    out.extend_from_slice(rest);
}

/// What stands before the first byte that needs an escape, the byte, and what stands behind it.
fn split_at_special(text: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let (blocks, _) = text.as_chunks::<BLOCK>();
    // Without a branch for each byte the compiler looks at all of a block at once.
    let is_clean = |block: &&[u8; BLOCK]| {
        !block
            .iter()
            .fold(false, |special, byte| special | is_special(*byte))
    };
    let clean = BLOCK * blocks.iter().take_while(is_clean).count();
    let left = text.get(clean..).unwrap_or_default();
    let at = clean + left.iter().position(|byte| is_special(*byte))?;
    let (before, rest) = text.split_at_checked(at)?;
    let (byte, behind) = rest.split_first()?;
    Some((before, *byte, behind))
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte.wrapping_sub(8) < 6 || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_where_the_server_puts_them() {
        let mut out = Vec::new();
        let text = "a\tb\\c\nd\re\u{8}f\u{b}g\u{c}h\u{7}i\u{e}j and a long tail without any\\";
        escape(text.as_bytes(), &mut out);
        let expected = "a\\tb\\\\c\\nd\\re\\bf\\vg\\fh\u{7}i\u{e}j and a long tail without any\\\\";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}
