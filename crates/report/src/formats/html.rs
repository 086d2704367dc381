//! stub
use crate::{Document, Format, Options};
use std::io;
/// `--format html`.
pub struct Html;
impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }
    fn render(&self, _: &Document, _: &Options<'_>, _: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}
