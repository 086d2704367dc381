//! Manuals of rules on a page.

use std::io;

use super::escape::Esc;
use crate::markdown::{Line, Style, spans};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    List,
    Numbers,
    Code,
}

impl Block {
    fn tags(self) -> (&'static str, &'static str) {
        match self {
            Block::None => ("", ""),
            Block::Paragraph => ("<p>", "</p>\n"),
            Block::List => ("<ul>", "</li></ul>\n"),
            Block::Numbers => ("<ol>", "</li></ol>\n"),
            Block::Code => ("<pre class=command><code>", "</code></pre>\n"),
        }
    }
}

/// Writes the text as HTML.
pub(super) fn write(text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let mut open = Block::None;
    for line in text.lines() {
        open = line_of(line, open, out)?;
    }
    out.write_all(open.tags().1.as_bytes())
}

fn line_of(text: &str, open: Block, out: &mut dyn io::Write) -> io::Result<Block> {
    let line = Line::of(text);
    if open == Block::Code && line != Line::Fence {
        writeln!(out, "{}", Esc(text))?;
        return Ok(open);
    }
    match line {
        Line::Fence if open == Block::Code => change(open, Block::None, out),
        Line::Fence => change(open, Block::Code, out),
        Line::Empty => change(open, Block::None, out),
        Line::Heading(_, title) => {
            change(open, Block::None, out)?;
            writeln!(out, "<h4>{}</h4>", Esc(title))?;
            Ok(Block::None)
        }
        Line::Item(number, item) => {
            let list = number.map_or(Block::List, |_| Block::Numbers);
            if open == list {
                out.write_all(b"</li>\n<li>")?;
            } else {
                change(open, list, out)?;
                out.write_all(b"<li>")?;
            }
            write_spans(item, out)?;
            Ok(list)
        }
        Line::Words(words) if open == Block::None => {
            change(open, Block::Paragraph, out)?;
            write_spans(words, out)?;
            Ok(Block::Paragraph)
        }
        Line::Words(words) => {
            out.write_all(b"\n")?;
            write_spans(words, out)?;
            Ok(open)
        }
    }
}

fn change(from: Block, to: Block, out: &mut dyn io::Write) -> io::Result<Block> {
    out.write_all(from.tags().1.as_bytes())?;
    out.write_all(to.tags().0.as_bytes())?;
    Ok(to)
}

fn write_spans(words: &str, out: &mut dyn io::Write) -> io::Result<()> {
    for (style, words) in spans(words) {
        match style {
            Style::Plain => write!(out, "{}", Esc(words))?,
            Style::Code => write!(out, "<code>{}</code>", Esc(words))?,
            Style::Strong => write!(out, "<strong>{}</strong>", Esc(words))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_manual_reads_as_written() {
        let mut out = Vec::new();
        let text = "# A\n\nb `<c>`\nd\n\n* e\n  f\n* g\n\n```\nh <i>\n```\n";
        super::write(text, &mut out).expect("memory takes all bytes");
        assert_eq!(
            String::from_utf8_lossy(&out),
            "<h4>A</h4>\n<p>b <code>&lt;c&gt;</code>\nd</p>\n<ul><li>e\nf</li>\n<li>g</li></ul>\n\
             <pre class=command><code>h &lt;i&gt;\n</code></pre>\n"
        );
    }
}
