//! One self-contained file for a browser: no request, no script needed for the essentials.

mod blind;
mod catalog_cost;
mod details;
mod diff;
mod drill;
mod dump;
pub(crate) mod escape;
mod experiment;
mod loss;
mod markdown;
mod measure;
mod picture;
mod printer;
mod salvage;
mod shell;
mod spans;
mod table;

use std::io;

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
        if let Some(view) = crate::view::of(document, options) {
            shell::open(&view.title, out)?;
            shell::command(&view.command, &view.subject, out)?;
            printer::blocks(&view.blocks, 0, out)?;
            return shell::close(&view.tool, out);
        }
        match document {
            Document::Check(_) | Document::Inspect(_) => Ok(()),
            Document::Drill(document) => drill::render(document, options, out),
            Document::Blind(document) => blind::render(document, out),
            Document::Loss(document) => loss::render(document, out),
            Document::Measure(document) => measure::render(document, options.figures, out),
            Document::CatalogCost(document) => catalog_cost::render(document, out),
            Document::Diff(document) => diff::render(document, out),
            Document::Salvage(account) => salvage::render(account, out),
            Document::Experiment(document) => experiment::render(document, out),
        }
    }
}
