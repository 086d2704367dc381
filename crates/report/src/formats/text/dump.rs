//! The bytes of a page, with the labels of what begins in each line.

use std::io;

use super::sheet::Sheet;
use crate::hex::{self, Hex, LINE_BYTES, Line};
use crate::view::Dump;
use crate::words::{clean, count_of, plural};

/// Columns of offset, bytes and letters in a line of the dump: beside them the longest name of a
/// field still stands within 80.
const DUMP_COLUMNS: usize = 59;

pub(super) fn dump(own: &Dump, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let hex = Hex::new(&own.page, &own.ranges);
    for line in hex.lines(&|_| false) {
        match line {
            Line::Bytes(line) => {
                let labels = hex.beginnings(line.clone()).join(", ");
                let bytes = own.page.get(line.clone()).unwrap_or_default();
                dump_line(line.start, bytes, &clean(&labels), sheet)?;
            }
            Line::Zeros(line) => {
                let total = plural(count_of(line.len()), "byte");
                sheet.raw(&format!("{:04x} {total} of zeros", line.start))?;
            }
        }
    }
    Ok(())
}

fn dump_line(at: usize, bytes: &[u8], labels: &str, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let mut columns = format!("{at:04x} ");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && index % 4 == 0 {
            columns.push(' ');
        }
        columns.push_str(&format!("{byte:02x}"));
    }
    let letters: String = bytes.iter().copied().map(hex::letter).collect();
    let line = format!("{columns:<40} {letters:<LINE_BYTES$}");
    if sheet.width() < DUMP_COLUMNS + 16 {
        return sheet.raw(&format!("{line}  {labels}"));
    }
    sheet.aside(&line, DUMP_COLUMNS, labels)
}
