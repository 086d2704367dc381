//! Tables between lines, as wide as the terminal.

use std::io;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Width};

use super::printer::plain;
use super::sheet::Sheet;
use crate::view::{Column, Medium, Row, Table};

/// Names longer than this are broken after a hyphen, so that the table fits 80 columns.
const NAME_COLUMNS: u16 = 15;

pub(super) fn table(own: &Table, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let columns: Vec<(usize, &Column)> = own
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.medium.is_in(Medium::Terminal))
        .collect();
    let shown = own
        .terminal
        .as_ref()
        .map_or(usize::MAX, |(limit, _)| *limit);
    let mut table = comfy_table::Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(sheet.width()).unwrap_or(u16::MAX));
    table.set_header(columns.iter().map(|(_, column)| title(column)));
    let rows = own.rows.iter().take(shown);
    table.add_rows(rows.map(|row| cells(row, &columns)));
    for (shown, (_, column)) in table.column_iter_mut().zip(&columns) {
        shown.set_padding((0, 1));
        if column.is_right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
        if column.is_name {
            shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(NAME_COLUMNS)));
        }
    }
    sheet.gap()?;
    for line in table.lines() {
        sheet.raw(&line)?;
    }
    match &own.terminal {
        Some((_, rest)) => sheet.text(2, rest),
        None => Ok(()),
    }
}

fn title(column: &Column) -> String {
    match column.short {
        Some(short) => short.to_owned(),
        None => crate::words::clean(&column.title).to_lowercase(),
    }
}

fn cells(row: &Row, columns: &[(usize, &Column)]) -> Vec<String> {
    let cells = columns.iter().map(|(index, column)| {
        let cell = row.cells.get(*index);
        let cell = cell.map_or_else(String::new, plain);
        if column.is_name {
            in_lines(&cell)
        } else {
            cell
        }
    });
    cells.collect()
}

/// A name of words and hyphens in lines.
fn in_lines(name: &str) -> String {
    let mut lines = String::new();
    let mut taken = 0;
    for word in name.split_inclusive(['-', ' ']) {
        let len = word.chars().count();
        if taken > 0 && taken + len > usize::from(NAME_COLUMNS) {
            lines.truncate(lines.trim_end().len());
            lines.push('\n');
            taken = 0;
        }
        lines.push_str(word);
        taken += len;
    }
    lines
}
