//! stub
use super::sheet::Sheet;
use pgclinic_diagnose::document::BlindDocument;
use std::io;
pub(super) fn render(_document: &BlindDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()
}
