//! For a terminal, a log or a mail: the verdict first, then the worst.

mod blind;
mod catalog_cost;
mod diff;
mod drill;
mod dump;
mod experiment;
mod loss;
mod measure;
mod printer;
mod salvage;
mod sheet;
mod table;

pub(crate) use salvage::{
    check_words, column_words, count_words, counts_words, extent, lost_words, not_replayed_words,
    object_words, place_words,
};

use std::io;

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
        let mut sheet = sheet::Sheet::new(out, options);
        if let Some(view) = crate::view::of(document, options) {
            return printer::blocks(&view.blocks, 0, &mut sheet);
        }
        match document {
            Document::Check(_) | Document::Inspect(_) => Ok(()),
            Document::Drill(document) => drill::render(document, &mut sheet),
            Document::Blind(document) => blind::render(document, &mut sheet),
            Document::Loss(document) => loss::render(document, &mut sheet),
            Document::Measure(document) => measure::render(document, options.figures, &mut sheet),
            Document::CatalogCost(document) => catalog_cost::render(document, &mut sheet),
            Document::Diff(document) => diff::render(document, &mut sheet),
            Document::Salvage(account) => salvage::render(account, &mut sheet),
            Document::Experiment(document) => experiment::render(document, &mut sheet),
        }
    }
}
