//! Apache Parquet: columns in row groups, compressed with Snappy. What stands in them for which
//! type: `docs/guide/columns.md`.

use pgclinic_columnar::Layout;

use super::Form;
use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// The format `parquet`.
pub struct Parquet;

impl Form for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }

    fn head(&self, _table: &Table, _out: &mut Vec<u8>) {}

    fn row(&self, _table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>) {
        texts.pack(row, out);
    }

    fn tail(&self, _out: &mut Vec<u8>) {}

    fn layout(&self) -> Option<Layout> {
        Some(Layout::Parquet)
    }
}
