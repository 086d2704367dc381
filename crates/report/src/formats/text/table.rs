//! Tables between lines, as wide as the terminal.

use std::io;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Width};

use super::printer::plain;
use super::sheet::{Sheet, visible};
use crate::view::{Column, Medium, Row, Table};

/// Columns of words have so many columns at least.
const WORDS_MIN: usize = 8;
/// After these a name goes on in the next line.
const NAME_JOINTS: [char; 5] = ['-', '_', '.', '/', ','];

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
    let rows = own.rows.iter().take(shown);
    let rows: Vec<Vec<String>> = rows.map(|row| cells(row, &columns)).collect();
    let rooms = rooms(&columns, &rows, sheet.width());
    let mut table = comfy_table::Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(sheet.width()).unwrap_or(u16::MAX));
    table.set_header(columns.iter().map(|(_, column)| title(column)));
    table.add_rows(rows.iter().map(|row| {
        let cells = row.iter().zip(&rooms);
        let cells = cells
            .map(|(cell, room)| room.map_or_else(|| cell.clone(), |room| in_lines(cell, room)));
        cells.collect::<Vec<_>>()
    }));
    for ((shown, (_, column)), room) in table.column_iter_mut().zip(&columns).zip(&rooms) {
        shown.set_padding((0, 1));
        if column.is_right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
        if let Some(room) = room {
            let with_padding = u16::try_from(room + 1).unwrap_or(u16::MAX);
            shown.set_constraint(ColumnConstraint::Absolute(Width::Fixed(with_padding)));
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

/// Columns of each column where not all of it fits: numbers stay whole, and words share what is
/// left, so that short ones stay whole too.
fn rooms(columns: &[(usize, &Column)], rows: &[Vec<String>], width: usize) -> Vec<Option<usize>> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (_, column))| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let longest = cells.map(|cell| visible(cell)).max().unwrap_or(0);
            longest.max(visible(&title(column)))
        })
        .collect();
    // Each column is padded by one, and a blank stands between two.
    let between = (columns.len() * 2).saturating_sub(1);
    if natural.iter().sum::<usize>() + between <= width {
        return vec![None; columns.len()];
    }
    let is_right = |at: usize| columns.get(at).is_some_and(|(_, column)| column.is_right);
    let mut rooms: Vec<Option<usize>> = natural.iter().map(|own| Some(*own)).collect();
    let numbers = natural.iter().enumerate().filter(|(at, _)| is_right(*at));
    let numbers: usize = numbers.map(|(_, own)| own).sum();
    let mut left = width.saturating_sub(between + numbers);
    let mut words: Vec<usize> = (0..natural.len()).filter(|at| !is_right(*at)).collect();
    words.sort_by_key(|at| natural.get(*at).copied());
    for (done, at) in words.iter().enumerate() {
        let share = left / (words.len() - done).max(1);
        let own = natural
            .get(*at)
            .copied()
            .unwrap_or(0)
            .min(share.max(WORDS_MIN));
        if let Some(room) = rooms.get_mut(*at) {
            *room = Some(own);
        }
        left = left.saturating_sub(own);
    }
    rooms
}

fn title(column: &Column) -> String {
    match column.short {
        Some(short) => short.to_owned(),
        None => crate::words::clean(&column.title).to_lowercase(),
    }
}

fn cells(row: &Row, columns: &[(usize, &Column)]) -> Vec<String> {
    let cells = columns.iter().map(|(index, _)| row.cells.get(*index));
    cells
        .map(|cell| cell.map_or_else(String::new, plain))
        .collect()
}

/// The text in lines of this room: between words, and within a longer word after what joins the
/// parts of a name.
fn in_lines(text: &str, room: usize) -> String {
    let (mut lines, mut taken) = (String::new(), 0);
    for word in text.split_inclusive(' ') {
        let is_long = visible(word.trim_end()) > room;
        let ends: &[char] = if is_long { &NAME_JOINTS } else { &[] };
        for part in word.split_inclusive(ends) {
            let columns = visible(part.trim_end());
            if taken > 0 && taken + columns > room {
                lines.truncate(lines.trim_end_matches(' ').len());
                lines.push('\n');
                taken = 0;
            }
            lines.push_str(part);
            taken += visible(part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::columns;

    #[test]
    fn names_are_broken_where_their_parts_meet() {
        assert_eq!(in_lines("public.customers", 12), "public.\ncustomers");
        let index = "pg_catalog.pg_proc_proname_args_nsp_index";
        assert_eq!(
            in_lines(index, 20),
            "pg_catalog.pg_proc_\nproname_args_nsp_\nindex"
        );
        assert_eq!(in_lines("two words", 20), "two words");
        assert_eq!(in_lines("two long words", 9), "two long\nwords");
    }

    #[test]
    fn numbers_and_short_names_stay_whole_where_a_long_word_is() {
        let of = columns("Table | Rows > | File");
        let of: Vec<(usize, &Column)> = of.iter().enumerate().collect();
        let row = |file: &str| vec!["public.customers".into(), "20,000".into(), file.into()];
        let rows = [row("short.csv")];
        assert_eq!(rooms(&of, &rows, 80), [None, None, None]);
        let rows = [row(&"long".repeat(30))];
        assert_eq!(rooms(&of, &rows, 80), [Some(16), Some(6), Some(53)]);
    }
}
