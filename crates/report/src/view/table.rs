//! Rows and columns.

use super::{Block, Medium, Words};
use crate::words as say;

/// Rows and columns.
pub(crate) struct Table {
    /// The columns.
    pub(crate) columns: Vec<Column>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// What it looks like on a page.
    pub(crate) style: Style,
    /// So many rows stand in a terminal, and what it says of the others.
    pub(crate) terminal: Option<(usize, String)>,
}

/// What a table looks like on a page. Where there is no room, each row becomes a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// As any table.
    Plain,
    /// The first column is a name, the last one no text.
    Board,
    /// A name, a value and what it means; without a head.
    Figures,
    /// So many columns that paper needs small letters.
    EveryRun,
}

impl Style {
    /// Rows become cards, in which every value carries the name of its column.
    pub(crate) fn has_cards(self) -> bool {
        matches!(self, Style::Plain | Style::Board)
    }
}

/// One column.
#[derive(Clone)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) title: String,
    /// Its name in a terminal, where that is another one.
    pub(crate) short: Option<&'static str>,
    /// Numbers stand at the right.
    pub(crate) is_right: bool,
    /// Where it stands.
    pub(crate) medium: Medium,
    /// On paper there is no room for it.
    pub(crate) is_extra: bool,
}

/// One row.
pub(crate) struct Row {
    /// A cell for each column.
    pub(crate) cells: Vec<Words>,
    /// What the buttons of a filter pick it by.
    pub(crate) marks: String,
    /// Something is wrong with it.
    pub(crate) is_fault: bool,
}

/// Columns by their names, between strokes: `Kind | (Live %) > | Rows a leaf = a leaf >`. One of
/// numbers ends in `>`; what follows `=` is its name in a terminal, which leaves out those in
/// brackets.
pub(crate) fn columns(names: &'static str) -> Vec<Column> {
    let names = names.split('|').map(|name| {
        let name = name.trim();
        let (name, column): (&str, fn(&'static str) -> Column) = match name.strip_suffix('>') {
            Some(name) => (name, right::<&str>),
            None => (name, left::<&str>),
        };
        let name = name.trim();
        let on_page = name
            .strip_prefix('(')
            .and_then(|name| name.strip_suffix(')'));
        match (on_page, name.split_once('=')) {
            (Some(name), _) => column(name).only(Medium::Page),
            (None, Some((title, short))) => column(title.trim()).short(short.trim()),
            (None, None) => column(name),
        }
    });
    names.collect()
}

/// A column of words.
pub(crate) fn left<T: Into<String>>(title: T) -> Column {
    Column {
        title: title.into(),
        short: None,
        is_right: false,
        medium: Medium::Both,
        is_extra: false,
    }
}

/// A column of numbers.
pub(crate) fn right<T: Into<String>>(title: T) -> Column {
    Column {
        is_right: true,
        ..left(title)
    }
}

impl Column {
    /// With another name in a terminal.
    pub(crate) fn short(mut self, short: &'static str) -> Self {
        self.short = Some(short);
        self
    }

    /// In one medium.
    pub(crate) fn only(mut self, medium: Medium) -> Self {
        self.medium = medium;
        self
    }

    /// Left out on paper.
    pub(crate) fn extra(mut self) -> Self {
        self.is_extra = true;
        self
    }
}

impl Row {
    /// A row of these cells.
    pub(crate) fn of(cells: Vec<Words>) -> Self {
        Row {
            cells,
            marks: String::new(),
            is_fault: false,
        }
    }

    /// Picked by these marks.
    pub(crate) fn marked(mut self, marks: impl Into<String>) -> Self {
        self.marks = marks.into();
        self
    }

    /// Shown as wrong, where it is.
    pub(crate) fn fault(mut self, is_fault: bool) -> Self {
        self.is_fault = is_fault;
        self
    }
}

impl Table {
    /// A table of these columns and rows.
    pub(crate) fn new(columns: Vec<Column>, rows: impl IntoIterator<Item = Row>) -> Self {
        Table {
            columns,
            rows: rows.into_iter().collect(),
            style: Style::Plain,
            terminal: None,
        }
    }

    /// In another style.
    pub(crate) fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// A terminal gets the first rows, and these words of the others.
    pub(crate) fn short(mut self, limit: usize, rest: impl Fn(u64) -> String) -> Self {
        let more = self.rows.len().saturating_sub(limit);
        self.terminal = (more > 0).then(|| (limit, rest(say::count_of(more))));
        self
    }

    /// As a block, unless it has no rows.
    pub(crate) fn unless_empty(self) -> Vec<Block> {
        if self.rows.is_empty() {
            Vec::new()
        } else {
            vec![Block::Table(self)]
        }
    }
}
