//! The little Markdown that manuals of rules use: headings, paragraphs, lists, code.

use std::io;

use super::escape::Esc;

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

fn line_of(line: &str, open: Block, out: &mut dyn io::Write) -> io::Result<Block> {
    let words = line.trim();
    if words.starts_with("```") {
        let next = if open == Block::Code {
            Block::None
        } else {
            Block::Code
        };
        change(open, next, out)?;
        return Ok(next);
    }
    if open == Block::Code {
        writeln!(out, "{}", Esc(line))?;
        return Ok(open);
    }
    if words.is_empty() {
        change(open, Block::None, out)?;
        return Ok(Block::None);
    }
    if let Some(title) = words.strip_prefix('#') {
        change(open, Block::None, out)?;
        writeln!(
            out,
            "<h4>{}</h4>",
            Esc(title.trim_start_matches('#').trim())
        )?;
        return Ok(Block::None);
    }
    if let Some((list, item)) = list_item(words) {
        if open == list {
            out.write_all(b"</li>\n<li>")?;
        } else {
            change(open, list, out)?;
            out.write_all(b"<li>")?;
        }
        spans(item, out)?;
        return Ok(list);
    }
    if open == Block::None {
        change(open, Block::Paragraph, out)?;
        spans(words, out)?;
        return Ok(Block::Paragraph);
    }
    out.write_all(b"\n")?;
    spans(words, out)?;
    Ok(open)
}

fn change(from: Block, to: Block, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(from.tags().1.as_bytes())?;
    out.write_all(to.tags().0.as_bytes())
}

fn list_item(words: &str) -> Option<(Block, &str)> {
    if let Some(item) = words
        .strip_prefix("* ")
        .or_else(|| words.strip_prefix("- "))
    {
        return Some((Block::List, item));
    }
    let (number, item) = words.split_once(". ")?;
    let is_number = number.len() <= 2 && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some((Block::Numbers, item))
}

/// Code between backquotes, strong words between pairs of stars.
fn spans(words: &str, out: &mut dyn io::Write) -> io::Result<()> {
    for (index, part) in words.split('`').enumerate() {
        if index % 2 == 1 {
            write!(out, "<code>{}</code>", Esc(part))?;
            continue;
        }
        for (index, part) in part.split("**").enumerate() {
            if index % 2 == 1 {
                write!(out, "<strong>{}</strong>", Esc(part))?;
            } else {
                write!(out, "{}", Esc(part))?;
            }
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
