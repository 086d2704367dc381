//! stub
use super::sheet::Sheet;
use pgclinic_diagnose::document::InspectDocument;
use std::io;
pub(super) fn render(_document: &InspectDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()
}
