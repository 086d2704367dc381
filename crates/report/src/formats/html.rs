//! One self-contained file for a browser: no request, no script needed for the essentials.

mod dump;
pub(crate) mod escape;
mod markdown;
mod picture;
mod printer;
mod shell;
mod spans;
mod table;

use std::io;

use crate::view::{self, View};
use crate::{Document, Format, Options};

/// `--format html`.
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        write(&view::of(document, options), out)
    }
}

/// Writes the page of a view.
pub(crate) fn write(view: &View, out: &mut dyn io::Write) -> io::Result<()> {
    shell::open(view, out)?;
    printer::blocks(&view.blocks, 0, out)?;
    shell::close(&view.tool, out)
}
