//! For a terminal, a log or a mail: the verdict first, then the worst.

mod dump;
mod manual;
mod printer;
mod sheet;
mod table;

use std::io;

pub use manual::write_manual;
pub use sheet::in_columns;

use crate::view::{self, View};
use crate::{Document, Format, Options};

/// `--format text`.
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        write(&view::of(document, options), options, out)
    }
}

/// Writes the lines of a view.
pub(crate) fn write(view: &View, options: &Options<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut sheet = sheet::Sheet::new(out, options);
    printer::blocks(&view.blocks, 0, &mut sheet)?;
    let rows = options.screen_rows.map(usize::from);
    let verdict = rows.and_then(|rows| printer::out_of_sight(&view.blocks, rows, &sheet));
    verdict.map_or(Ok(()), |own| printer::verdict(own, &mut sheet))
}
