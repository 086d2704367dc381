//! The figures of a cluster's relations as text: the largest in two tables, a few in whole.

use std::io;

use pgclinic_diagnose::document::{Figure, MeasureDocument, MeasuredRelation, Spread};
use pgclinic_diagnose::measures::{FigureKind, MEASURES, Unit};

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::words::{self, bytes, clean, count, count_of, plural};

/// Relations of a kind that are listed.
const LISTED_MAX: usize = 25;
/// So many relations or fewer are told in whole.
const WHOLE_MAX: usize = 2;

pub(super) fn render(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    headline(document, sheet)?;
    sheet.text(2, &clean(&words::target(&document.target)))?;
    for entry in &document.coverage.not_checked {
        let words = format!("not measured: {}: {}", entry.what, entry.why);
        sheet.text(2, &clean(&words))?;
    }
    if document.relations.len() <= WHOLE_MAX {
        return document
            .relations
            .iter()
            .try_for_each(|relation| whole(relation, sheet));
    }
    tables(document, sheet)?;
    btrees(document, sheet)?;
    others(document, sheet)
}

fn headline(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let total = |name: &str| {
        let counts = document
            .relations
            .iter()
            .filter_map(|own| own.count("table", name));
        counts.sum::<u64>()
    };
    let (length, dead, free) = (
        total("table_len"),
        total("dead_tuple_len"),
        total("free_space"),
    );
    let word = match document.interrupted {
        true => sheet.ink(Ink::Warn, "INTERRUPTED"),
        false => sheet.ink(Ink::Good, "MEASURED"),
    };
    let coverage = &document.coverage;
    let size = bytes(coverage.bytes_seen);
    let relations = plural(coverage.relations, "relation");
    let time = words::seconds(document.elapsed_s);
    let line = format!(
        "{word}  {relations}, {size} in {time}; tables are {} % dead rows and {} % free space",
        words::percent(dead, length),
        words::percent(free, length)
    );
    sheet.text(0, &line)
}

/// The largest relations that a test picks, and how many more there are. What is under a thousandth of the largest is left out.
fn largest(
    document: &MeasureDocument,
    picked: impl Fn(&MeasuredRelation) -> bool,
) -> (Vec<&MeasuredRelation>, usize) {
    let mut all: Vec<_> = document
        .relations
        .iter()
        .filter(|own| picked(own) && own.bytes > 0)
        .collect();
    all.sort_by_key(|own| std::cmp::Reverse(own.bytes));
    let least = all.first().map_or(0, |own| own.bytes / 1000);
    let worth = all.partition_point(|own| own.bytes >= least);
    let listed = worth.min(LISTED_MAX);
    let more = all.len().saturating_sub(listed);
    all.truncate(listed);
    (all, more)
}

fn tables(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, |own| own.sections.contains_key("table"));
    let header = ["table", "size", "rows", "dead %", "free %", "rewrite frees"];
    let rows = listed.iter().map(|own| {
        let frees = own.count("table", "rewrite_gives_back_bytes");
        vec![
            title(own),
            bytes(own.bytes),
            number(own, "table", "tuple_count"),
            share(own, "table", "dead_tuple_percent"),
            share(own, "table", "free_percent"),
            frees.map_or_else(unknown, bytes),
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn btrees(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, is_btree);
    let header = [
        "btree",
        "size",
        "rows",
        "density %",
        "fragments %",
        "a leaf",
    ];
    let rows = listed.iter().map(|own| {
        let items = match own.figure("index", "items_per_leaf") {
            Some(Figure::Spread(spread)) => format!("{:.2}", spread.mean),
            _ => unknown(),
        };
        vec![
            title(own),
            bytes(own.bytes),
            number(own, "index", "row_count"),
            share(own, "index", "avg_leaf_density"),
            share(own, "index", "leaf_fragmentation"),
            items,
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn is_btree(own: &MeasuredRelation) -> bool {
    own.access_method.as_deref() == Some("btree")
}

fn others(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, |own| {
        !own.sections.contains_key("table") && !is_btree(own)
    });
    let header = ["other relation", "kind", "size", "items", "free %"];
    let rows = listed.iter().map(|own| {
        vec![
            title(own),
            own.access_method.clone().unwrap_or_else(unknown),
            bytes(own.bytes),
            number(own, "index", "tuple_count"),
            share(own, "index", "free_percent"),
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn number(own: &MeasuredRelation, section: &str, name: &str) -> String {
    own.count(section, name).map_or_else(unknown, count)
}

fn section(
    header: &[&str],
    rows: Vec<Vec<String>>,
    more: usize,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    table(header, &[], rows, sheet)?;
    if more > 0 {
        let words = format!(
            "and {} smaller ones; --relation NAME shows all figures of one, --format json those of all",
            count(count_of(more))
        );
        sheet.text(2, &words)?;
    }
    Ok(())
}

fn title(own: &MeasuredRelation) -> String {
    clean(&match &own.database {
        Some(database) => format!("{} in {database}", own.name()),
        None => own.name(),
    })
}

fn share(own: &MeasuredRelation, section: &str, name: &str) -> String {
    own.real(section, name)
        .map_or_else(unknown, |share| format!("{share:.1}"))
}

fn unknown() -> String {
    "-".into()
}

/// Every figure of one relation.
fn whole(own: &MeasuredRelation, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, &title(own));
    sheet.text(
        0,
        &format!(
            "{title}  {}, {}",
            bytes(own.bytes),
            plural(own.blocks, "page")
        ),
    )?;
    for measure in MEASURES {
        for kind in measure.figures() {
            if let Some(figure) = own.figure(measure.section(), kind.name) {
                sheet.entry(
                    2,
                    kind.name,
                    28,
                    &format!("{}  {}", value(kind, figure), kind.summary),
                )?;
            }
        }
    }
    Ok(())
}

fn value(kind: &FigureKind, figure: &Figure) -> String {
    match (figure, kind.unit) {
        (Figure::Count(number), Unit::Bytes) if *number >= 1024 => {
            format!("{} ({})", count(*number), bytes(*number))
        }
        (Figure::Count(number), _) => count(*number),
        (Figure::Real(number), Unit::Percent) => format!("{number:.2} %"),
        (Figure::Real(number), _) => format!("{number:.2}"),
        (Figure::Spread(spread), _) => spread_words(spread),
    }
}

fn spread_words(spread: &Spread) -> String {
    format!(
        "{} to {}, mean {:.2}, mostly {}",
        count(spread.minimum),
        count(spread.maximum),
        spread.mean,
        count(spread.mode)
    )
}
