//! stub
use super::sheet::Sheet;
use pgclinic_diagnose::document::DrillDocument;
use std::io;
pub(super) fn render(_document: &DrillDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()
}
