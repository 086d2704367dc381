//! What a format is, and what it may be asked for.

use std::io;

use pgclinic_model::{CheckDocument, FigureKinds};

use crate::{Document, Neighbour};

/// A rule's page of the manual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleText {
    /// One line.
    pub summary: &'static str,
    /// Markdown: what was seen, what usually causes it, what is at risk, what to do.
    pub explain: &'static str,
}

/// How to render.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Text: colours by ANSI escapes.
    pub color: bool,
    /// Text: columns to wrap at; less than 40 counts as 40.
    pub width: u16,
    /// Text: rows of the screen that it goes to; where it takes more, the verdict and what to do
    /// next stand at the end again.
    pub screen_rows: Option<u16>,
    /// JSON: one field a line.
    pub pretty: bool,
    /// The manual of a rule, by its name.
    pub explain: &'a dyn Fn(&str) -> Option<RuleText>,
    /// What the figures of a measure are called, in the order of reading; others are not shown.
    pub figures: &'a FigureKinds,
    /// HTML: pages that lie beside it.
    pub neighbours: &'a [Neighbour],
    /// HTML: the page is served, and has something new after so many seconds.
    pub refresh_s: Option<u32>,
}

/// Of documents without figures.
static NO_FIGURES: FigureKinds = FigureKinds {
    of_relations: Vec::new(),
    of_columns: Vec::new(),
    of_databases: Vec::new(),
};

impl Default for Options<'_> {
    /// 80 columns, no colours, pretty JSON, no manual.
    fn default() -> Self {
        Options {
            color: false,
            width: 80,
            screen_rows: None,
            pretty: true,
            explain: &|_| None,
            figures: &NO_FIGURES,
            neighbours: &[],
            refresh_s: None,
        }
    }
}

/// A way to write a document.
pub trait Format: Sync {
    /// What `--format` calls it.
    fn name(&self) -> &'static str;

    /// It has a way to write documents of this schema. What it lacks is refused before the work
    /// that would make the document.
    fn renders(&self, _schema: &str) -> bool {
        true
    }

    /// Writes the whole document. Same document and options, same bytes.
    ///
    /// # Errors
    /// Those of `out`.
    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
}

/// The check that a format of checks alone is given.
///
/// # Errors
/// Any other document has no such form.
pub(crate) fn only_checks(document: &Document) -> io::Result<&CheckDocument> {
    match document {
        Document::Check(document) => Ok(document),
        other => {
            let why = format!("documents of {} have no such form", other.schema());
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}
