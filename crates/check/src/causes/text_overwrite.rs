//! Text written over the page: a log line, a script, a mail, where header or line pointers were.

use pgclinic_format::Page;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_model::document::SHOWN_TEXT;
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::PageCx;

/// Printable bytes in a row that no header or array of line pointers has by chance.
const RUN_BYTES: usize = 24;
/// Bytes of the text that are told.
const TOLD_BYTES: usize = 48;

/// The cause of a page with text where its structure was.
pub struct TextOverwrite;

impl CauseOf for TextOverwrite {
    fn name(&self) -> &'static str {
        "text-overwrite"
    }

    fn evidence(&self, page: Page<'_>, _cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let lower = usize::from(page.pd_lower());
        let sane = page.header_is_sane_to_the_server() && lower >= HEADER_BYTES;
        let structure = if sane { lower } else { HEADER_BYTES };
        let (start, end) = text_runs(page.bytes())
            .find(|(start, end)| *start < structure && end - start >= RUN_BYTES)?;
        let text: String = page
            .bytes()
            .get(start..end)?
            .iter()
            .take(TOLD_BYTES)
            .map(|byte| char::from(*byte))
            .collect();
        Some((
            0.9,
            facts([
                ("bytes", vec![start, end].into()),
                (SHOWN_TEXT, text.into()),
            ]),
        ))
    }
}

/// Half-open ranges of printable bytes.
fn text_runs(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes.get(at..)?.iter().position(is_text)?;
        let len = bytes
            .get(start..)?
            .iter()
            .position(|byte| !is_text(byte))
            .unwrap_or(bytes.len() - start);
        at = start + len;
        Some((start, at))
    })
}
