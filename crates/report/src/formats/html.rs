//! One self-contained file for a browser: no request, no script needed for the essentials.

mod blind;
mod catalog_cost;
mod check;
mod details;
mod diff;
mod drill;
mod dump;
pub(crate) mod escape;
mod experiment;
mod finding;
mod inspect;
mod loss;
mod map;
mod markdown;
mod measure;
mod plan;
mod salvage;
mod shell;

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
        match document {
            Document::Check(document) => check::render(document, options, out),
            Document::Inspect(document) => inspect::render(document, options, out),
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
