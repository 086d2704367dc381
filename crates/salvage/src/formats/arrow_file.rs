//! The Arrow IPC file format (Feather, version 2): batches of columns, not compressed. Their kinds
//! are those of Parquet.

use pgclinic_columnar::Layout;

use super::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// The format `arrow`.
pub struct ArrowFile;

impl Form for ArrowFile {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn extension(&self) -> &'static str {
        "arrow"
    }

    fn head(&self, _table: &Table, _out: &mut Vec<u8>) {}

    fn row(&self, _table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        texts.pack(row, out);
    }

    fn tail(&self, _out: &mut Vec<u8>) {}

    fn layout(&self) -> Option<Layout> {
        Some(Layout::Arrow)
    }
}
