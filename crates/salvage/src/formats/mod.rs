//! The register of forms that rows are written in.

use pgclinic_columnar::Layout;

use crate::shape::Table;
use crate::texts::Texts;
use crate::values::Row;

/// A form of rows in a file.
pub trait Form: Sync {
    /// What `--format` calls it.
    fn name(&self) -> &'static str;
    /// Behind the last point of a file's name.
    fn extension(&self) -> &'static str;
    /// What stands before the first row.
    fn head(&self, table: &Table, out: &mut Vec<u8>);
    /// One row.
    fn row(&self, table: &Table, row: &Row<'_>, texts: &mut Texts, out: &mut Vec<u8>);
    /// What stands behind the last row.
    fn tail(&self, out: &mut Vec<u8>);
    /// Rows do not stand in the file as they come, but are gathered into columns of this layout:
    /// `row` gives cells, and there is neither head nor tail.
    fn layout(&self) -> Option<Layout> {
        None
    }
    /// How a row is written whose values are text already; none for a form that the server writes
    /// itself, or that takes values as they are stored.
    fn text_writer(&self) -> Option<RowOfTexts> {
        None
    }
}

/// Writes one row from the texts of its values, as `COPY` prints them.
pub type RowOfTexts = fn(&Table, &[Option<Vec<u8>>], &mut Vec<u8>);

pgclinic_format::registry! {
    /// Every form, in the order of `--help`; the first is the default.
    pub static FORMS: [Form] = [
        csv::Csv,
        copy_text::CopyText,
        copy_binary::CopyBinary,
        json_lines::JsonLines,
        inserts::Inserts,
        parquet::Parquet,
        arrow_file::ArrowFile,
    ];
}

pub(crate) use copy_text::{around as copy_around, escape as copy_escape};
pub(crate) use csv::{Csv, field as csv_field, header as csv_header};

/// The form of this name.
pub fn form_named(name: &str) -> Option<&'static dyn Form> {
    FORMS.iter().copied().find(|form| form.name() == name)
}
