//! Figures of one thing: a table and pictures on a page, lines in a terminal.

use pgclinic_model::document::{Figure, Sections, Spread};
use pgclinic_model::{FigureKind, FigureList, Unit};

use super::picture::{Histogram, Picture, Shares};
use super::{Block, Row, Style, Table, Words, columns, entries, in_terminal, on_page, words};
use crate::figure_words::{date, value};
use crate::words::count;

/// Bars of a picture: more values than these share bars.
const BARS_MAX: u64 = 101;
/// Where the words of a figure begin in a terminal.
const COLUMN: usize = 28;

/// Section, kind and value of a figure that is there.
type There<'a> = (&'static str, &'static FigureKind, &'a Figure);

/// The figures that are there, in the order of their kinds; `range` is where the figure of a
/// sample may lie.
pub(super) fn figures(
    kinds: &FigureList,
    sections: &Sections,
    range: &dyn Fn(&str, &FigureKind) -> String,
) -> Vec<Block> {
    let there = there(kinds, sections);
    let lines = there.iter().map(|own| line(own, range)).collect();
    both(&there, lines, range)
}

/// The same of a column or database; a terminal leaves out those of nothing at all.
pub(super) fn named_figures(kinds: &FigureList, sections: &Sections) -> Vec<Block> {
    let there = there(kinds, sections);
    let no_range = |_: &str, _: &FigureKind| String::new();
    let something = there
        .iter()
        .filter(|(_, _, figure)| !matches!(figure, Figure::Count(0)));
    let lines = something.map(|own| line(own, &no_range)).collect();
    both(&there, lines, &no_range)
}

fn there<'a>(kinds: &FigureList, sections: &'a Sections) -> Vec<There<'a>> {
    let figures = kinds.iter().filter_map(|(section, kind)| {
        let figure = sections.get(*section)?.get(kind.name)?.as_ref()?;
        Some((*section, *kind, figure))
    });
    figures.collect()
}

fn line(
    (section, kind, figure): &There<'_>,
    range: &dyn Fn(&str, &FigureKind) -> String,
) -> (String, Words) {
    let (value, range) = (value(kind, figure), range(section, kind));
    let words = words(format!("{value}{range}  {}", kind.summary));
    (kind.name.to_owned(), words)
}

fn both(
    there: &[There<'_>],
    lines: Vec<(String, Words)>,
    range: &dyn Fn(&str, &FigureKind) -> String,
) -> Vec<Block> {
    let is_value = |own: &&There<'_>| !matches!(own.2, Figure::Points(_));
    let rows = there
        .iter()
        .filter(is_value)
        .map(|(section, kind, figure)| {
            Row::of(vec![
                Words::default().code(kind.name),
                format!("{}{}", value(kind, figure), range(section, kind)).into(),
                kind.summary.into(),
            ])
        });
    let columns = columns("Figure | Value > | Meaning");
    let mut page = Table::new(columns, rows)
        .style(Style::Figures)
        .unless_empty();
    page.extend(
        there
            .iter()
            .filter_map(|(_, kind, figure)| match figure {
                // A single value is no picture: its row says it.
                Figure::Spread(spread) if spread.minimum == spread.maximum => None,
                Figure::Spread(spread) => Some(Picture::Histogram(histogram(kind, spread))),
                Figure::Points(points) => Some(Picture::Scatter(kind.summary, points.clone())),
                _ => None,
            })
            .map(Block::Picture),
    );
    vec![on_page(page), in_terminal(entries(COLUMN, lines))]
}

/// One bar a value, or a range of values.
fn histogram(kind: &FigureKind, spread: &Spread) -> Histogram {
    let named = |value: u64| match kind.unit {
        Unit::Day => date(i64::try_from(value).unwrap_or(i64::MAX)),
        _ => count(value),
    };
    let range = spread.maximum.saturating_sub(spread.minimum);
    let values = range.saturating_add(1);
    let per_bar = values.div_ceil(BARS_MAX).max(1);
    let bars = (0..values.div_ceil(per_bar)).map(|bar| {
        let first = spread.minimum.saturating_add(bar.saturating_mul(per_bar));
        let last = first.saturating_add(per_bar - 1);
        match per_bar {
            1 => (0, named(first)),
            _ => (0, format!("{} to {}", named(first), named(last))),
        }
    });
    let mut bars: Vec<(u64, String)> = bars.collect();
    for [value, often] in &spread.histogram {
        let bar = value.saturating_sub(spread.minimum) / per_bar;
        let bar = usize::try_from(bar).ok().and_then(|bar| bars.get_mut(bar));
        if let Some((height, _)) = bar {
            *height = height.saturating_add(*often);
        }
    }
    Histogram {
        caption: kind.summary,
        bars,
        ends: [named(spread.minimum), named(spread.maximum)],
    }
}

/// Parts of a whole as one bar: their figures, colours and words.
pub(super) fn shares(
    label: &'static str,
    total: u64,
    parts: &[(&str, &'static str, &'static str)],
    part: impl Fn(&str) -> u64,
) -> Block {
    let parts = parts.iter();
    let parts = parts.map(|(name, class, words)| (part(name), *class, *words));
    Block::Picture(Picture::Shares(Shares {
        label,
        total,
        parts: parts.collect(),
    }))
}
