//! A page's bytes, coloured by what they are, with what is wrong marked.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use pgclinic_model::document::HexRange;

use super::escape::Esc;
use crate::hex::{self, Hex, LINE_BYTES, Line};
use crate::view::Dump;
use crate::words::{count_of, plural};

/// On a longer page what a byte is stands at the end of its line alone, and not over it as well.
const TITLED_BYTES_MAX: usize = 8192;

/// Bytes that something is wrong with, and what.
type Mark = (Range<usize>, String);

/// The dump with its legend.
pub(super) fn write(own: &Dump, out: &mut dyn io::Write) -> io::Result<()> {
    let Dump {
        page,
        ranges,
        marks,
    } = own;
    if !ranges.is_empty() {
        legend(!marks.is_empty(), out)?;
    }
    let hex = Hex::new(page, ranges);
    let mut marked: Vec<Option<usize>> = vec![None; page.len()];
    for (index, (bytes, _)) in marks.iter().enumerate() {
        if let Some(bytes) = marked.get_mut(bytes.clone()) {
            bytes.fill(Some(index));
        }
    }
    let mark_at = |at: usize| marked.get(at).copied().flatten();
    let starts: HashSet<usize> = marks.iter().map(|(bytes, _)| bytes.start).collect();
    out.write_all(b"<pre class=hex tabindex=0>")?;
    for line in hex.lines(&|at| starts.contains(&at)) {
        match line {
            Line::Bytes(line) => one_line(&hex, line, marks, &mark_at, out)?,
            Line::Zeros(line) => writeln!(
                out,
                "<b>{:04x}</b>  <span class=zeros>{} of zeros</span>",
                line.start,
                plural(count_of(line.len()), "byte")
            )?,
        }
    }
    out.write_all(b"</pre>\n")
}

fn one_line(
    hex: &Hex<'_>,
    line: Range<usize>,
    marks: &[Mark],
    mark_at: &dyn Fn(usize) -> Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write!(out, "<b>{:04x}</b>  ", line.start)?;
    let runs = hex.runs(line.clone(), mark_at);
    for run in &runs {
        let mark = mark_at(run.start).and_then(|index| marks.get(index));
        let bytes = hex.page.get(run.clone()).unwrap_or_default();
        let titled = Titled::of(hex.page);
        open(hex.label(run.start), mark, titled, out)?;
        for (index, byte) in bytes.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            write!(out, "{gap}{byte:02x}")?;
        }
        out.write_all(b"</i> ")?;
    }
    let missing = LINE_BYTES.saturating_sub(line.len()) * 3;
    write!(out, "{:missing$} ", "")?;
    let letters = hex.page.get(line.clone()).unwrap_or_default().iter();
    let letters: String = letters.copied().map(hex::letter).collect();
    write!(out, "<span class=letters>{}</span>", Esc(letters))?;
    let labels = hex.beginnings(line.clone()).join(", ");
    if !labels.is_empty() {
        write!(out, "  <u>{}</u>", Esc(labels))?;
    }
    let begun = marks
        .iter()
        .filter(|(bytes, _)| line.contains(&bytes.start));
    for (_, words) in begun.take(3) {
        write!(out, "  <em>{}</em>", Esc(words))?;
    }
    out.write_all(b"\n")
}

/// Whether each byte says what it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Titled {
    All,
    Marked,
}

impl Titled {
    fn of(page: &[u8]) -> Self {
        match page.len() {
            0..=TITLED_BYTES_MAX => Titled::All,
            _ => Titled::Marked,
        }
    }
}

fn open(
    label: Option<&HexRange>,
    mark: Option<&Mark>,
    titled: Titled,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let class = label.map_or("o", |label| part_class(&label.part));
    let hurt = if mark.is_some() { " x" } else { "" };
    write!(out, "<i class=\"{class}{hurt}\"")?;
    match (label, mark) {
        (None, None) => {}
        (Some(_), None) if titled == Titled::Marked => {}
        (Some(label), None) => write!(out, " title=\"{}\"", Esc(&label.label))?,
        (None, Some(mark)) => write!(out, " title=\"{}\"", Esc(&mark.1))?,
        (Some(label), Some(mark)) => {
            write!(out, " title=\"{}: {}\"", Esc(&label.label), Esc(&mark.1))?;
        }
    }
    out.write_all(b">")
}

/// The class of a part of the page, for its colour.
pub(super) fn part_class(part: &str) -> &'static str {
    match part {
        "header" => "h",
        "line-pointer" => "l",
        "tuple-header" => "t",
        "tuple-data" => "d",
        "special" => "s",
        "free" => "f",
        _ => "o",
    }
}

/// What the colours mean.
fn legend(marked: bool, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<p class=legend><i class=h>page header</i> <i class=l>line pointers</i> \
          <i class=t>tuple headers</i> <i class=d>tuple data</i> <i class=s>special space</i> \
          <i class=f>free space</i>",
    )?;
    if marked {
        out.write_all(b" <i class=\"o x\">what a finding is about</i>")?;
    }
    out.write_all(b"</p>\n")
}
