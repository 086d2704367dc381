//! Tables of a page.

use std::io;

use super::escape::Esc;
use super::spans;
use crate::view::{Column, Medium, Row, Style, Table};

pub(super) fn table(own: &Table, out: &mut dyn io::Write) -> io::Result<()> {
    let class = match own.style {
        Style::Plain => " class=cards",
        Style::Board => " class=\"board cards\"",
        Style::Figures => " class=figures",
        Style::EveryRun => " class=every-run",
    };
    writeln!(out, "<div class=wide><table{class}>")?;
    let columns: Vec<(usize, &Column)> = own
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.medium.is_in(Medium::Page))
        .collect();
    if own.style != Style::Figures {
        out.write_all(b"<thead><tr>")?;
        for (_, column) in &columns {
            write!(out, "<th{}>{}</th>", class_of(column), Esc(&column.title))?;
        }
        out.write_all(b"</tr></thead>\n")?;
    }
    out.write_all(b"<tbody>\n")?;
    for row in &own.rows {
        self::row(row, &columns, own.style, out)?;
    }
    out.write_all(b"</tbody></table></div>\n")
}

fn class_of(column: &Column) -> &'static str {
    match (column.is_right, column.is_extra) {
        (true, true) => " class=\"n more\"",
        (true, false) => " class=n",
        (false, _) => "",
    }
}

fn row(
    row: &Row,
    columns: &[(usize, &Column)],
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    out.write_all(b"<tr")?;
    if row.is_fault {
        out.write_all(b" class=fault")?;
    }
    if !row.marks.is_empty() {
        write!(out, " data-mark=\"{}\"", Esc(&row.marks))?;
    }
    out.write_all(b">")?;
    for (index, column) in columns {
        write!(out, "<td{}", class_of(column))?;
        // The name of a thing needs no word before it, a number does.
        if style.has_cards() && (*index > 0 || column.is_right) {
            write!(out, " data-name=\"{}\"", Esc(column.title.to_lowercase()))?;
        }
        let words = row.cells.get(*index).map(spans::html);
        write!(out, ">{}</td>", words.unwrap_or_default())?;
    }
    out.write_all(b"</tr>\n")
}
