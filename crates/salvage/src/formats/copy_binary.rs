//! `COPY … TO … (FORMAT binary)`. Truth: `CopyOneRowTo` in `src/backend/commands/copyto.c`, and the
//! types' send functions.
//!
//! ```text
//! PGCOPY \n 0xFF \r \n 0x00   flags i32   length of what else stands in the head i32
//! row: count of columns i16, then of each its length i32 (-1 is null) and its bytes
//! end: -1 i16
//! ```

use super::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// The format `binary`.
pub struct CopyBinary;

impl Form for CopyBinary {
    fn name(&self) -> &'static str {
        "binary"
    }

    fn extension(&self) -> &'static str {
        "bin"
    }

    fn head(&self, _table: &Table, out: &mut Vec<u8>) {
        out.extend_from_slice(b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0");
    }

    fn row(&self, _table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        // A table has at most 1600 columns.
        let columns = u16::try_from(row.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&columns.to_be_bytes());
        for column in 0..row.len() {
            let start = out.len();
            out.extend_from_slice(&NULL);
            let from = out.len();
            let Some(value) = row.value(column) else {
                continue;
            };
            if texts.write(column, value, out).is_none() {
                out.truncate(from);
                continue;
            }
            let length = i32::try_from(out.len() - from).unwrap_or(i32::MAX);
            if let Some(slot) = out.get_mut(start..from) {
                slot.copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0xFF; 2]);
    }
}

/// A length that says that there is no value.
const NULL: [u8; 4] = [0xFF; 4];
