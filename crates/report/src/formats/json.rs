//! The master form: the document itself, keys in the order of its schema.

use std::io;

use crate::{Document, Format, Options};

/// `--format json`.
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn render(
        &self,
        document: &Document,
        options: &Options<'_>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        if options.pretty {
            serde_json::to_writer_pretty(&mut *out, document)?;
        } else {
            serde_json::to_writer(&mut *out, document)?;
        }
        out.write_all(b"\n")
    }
}
