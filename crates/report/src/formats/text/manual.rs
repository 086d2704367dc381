//! A manual in Markdown as lines of a terminal or of a pipe.

use std::io;

use super::sheet::{Ink, Sheet, visible};
use crate::Options;
use crate::markdown::{Line, Style, spans};
use crate::words::clean;

/// Lines of prose are no wider, however wide the screen is.
const PROSE_COLUMNS_MAX: u16 = 100;
/// Columns before what stands under a heading.
const MARGIN: usize = 2;

/// Writes the manual, wrapped. Where there are no colours, marks of code stay: what is between them
/// is to be typed.
///
/// # Errors
/// Those of `out`.
pub fn write_manual(
    manual: &str,
    options: &Options<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let options = Options {
        width: options.width.min(PROSE_COLUMNS_MAX),
        ..*options
    };
    let mut page = Page {
        sheet: Sheet::new(out, &options),
        indent: 0,
        open: None,
        is_code: false,
    };
    manual.lines().try_for_each(|line| page.line(line))?;
    page.close()
}

struct Page<'a> {
    sheet: Sheet<'a>,
    /// Columns before what stands under the last heading.
    indent: usize,
    /// The paragraph or item that may go on: its label, and its words.
    open: Option<(String, String)>,
    is_code: bool,
}

impl Page<'_> {
    fn line(&mut self, line: &str) -> io::Result<()> {
        if self.is_code && Line::of(line) != Line::Fence {
            let indent = self.indent + MARGIN;
            return self.sheet.raw(&format!("{:indent$}{}", "", clean(line)));
        }
        match Line::of(line) {
            Line::Fence => {
                self.is_code = !self.is_code;
                self.close()
            }
            Line::Empty => {
                self.close()?;
                self.sheet.gap_once()
            }
            Line::Heading(depth, title) => self.heading(depth, title),
            Line::Item(number, words) => {
                self.close()?;
                let label = number.map_or_else(|| "-".to_owned(), |own| format!("{own}."));
                self.open = Some((label, words.to_owned()));
                Ok(())
            }
            Line::Words(words) => {
                let (_, open) = self.open.get_or_insert_default();
                if !open.is_empty() {
                    open.push(' ');
                }
                open.push_str(words);
                Ok(())
            }
        }
    }

    /// The first heading names the page; sections are in capitals, as those of reports are.
    fn heading(&mut self, depth: usize, title: &str) -> io::Result<()> {
        self.close()?;
        let title = if depth > 1 {
            clean(title).to_uppercase()
        } else {
            clean(title)
        };
        self.indent = if depth > 1 { MARGIN } else { 0 };
        let title = self.sheet.ink(Ink::Strong, &title);
        self.sheet.text(0, &title)
    }

    /// Writes the open paragraph or item.
    fn close(&mut self) -> io::Result<()> {
        let Some((label, words)) = self.open.take() else {
            return Ok(());
        };
        let column = if label.is_empty() { 0 } else { label.len() + 1 };
        let room = self.sheet.width().saturating_sub(self.indent + column);
        let words = self.inked(&words, room);
        self.sheet.entry(self.indent, &label, column, &words)
    }

    /// Code that fits into a line is not broken: somebody copies it.
    fn inked(&self, words: &str, room: usize) -> String {
        let inked = spans(words).into_iter().map(|(style, words)| {
            let words = clean(words);
            let is_coloured = self.sheet.is_coloured();
            match style {
                Style::Plain => words,
                Style::Strong => self.sheet.ink(Ink::Strong, &words),
                Style::Code => {
                    let words = if visible(&words) + 2 <= room {
                        words.replace(' ', Sheet::BLANK_IN_CODE)
                    } else {
                        words
                    };
                    if is_coloured {
                        self.sheet.ink(Ink::Strong, &words)
                    } else {
                        format!("`{words}`")
                    }
                }
            }
        });
        inked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = "Copy first.\n\n# a-rule\n\nshort\n\n## What it does\n\nReads `pgclinic check PGDATA --level full` and more words\nof it. **Never** wait.\n\n1. one\n2. two\n\n```text\n  kept as   it is\n```\n";

    fn written(color: bool) -> String {
        let options = Options {
            color,
            width: 48,
            ..Options::default()
        };
        let mut out = Vec::new();
        write_manual(MANUAL, &options, &mut out).expect("memory takes all bytes");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_pipe_gets_wrapped_lines_and_marks_around_what_is_typed() {
        let text = "Copy first.\n\na-rule\n\nshort\n\nWHAT IT DOES\n\n  Reads `pgclinic check PGDATA --level full` and\n  more words of it. Never wait.\n\n  1. one\n  2. two\n\n      kept as   it is\n";
        assert_eq!(written(false), text);
    }

    #[test]
    fn colours_take_the_place_of_marks() {
        let text = written(true);
        let command = "\x1b[1mpgclinic check PGDATA --level full\x1b[0m and\n";
        assert!(text.contains(command), "{text}");
        assert!(text.contains("\x1b[1mWHAT IT DOES\x1b[0m"), "{text}");
    }
}
